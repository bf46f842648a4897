"""Runs child processes that never outlive their parent.

The parent ends its children with SIGTERM, then SIGKILL. If the parent is killed, the kernel kills
the children (Linux); see `winnow.parent`.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Self

from winnow.parent import PARENT_VARIABLE
from winnow.python_command import python_command

_GRACE = 15.0
"""Seconds between SIGTERM and SIGKILL."""


class Processes:
    """A context manager that starts child processes, and ends all of them."""

    def __init__(self) -> None:
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._restarts: dict[str, Callable[[], subprocess.Popen[bytes]]] = {}

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        """Starts `python -m winnow ARGUMENTS` as `name`, with `log` as its output if not None."""
        command = python_command("winnow", *arguments)
        self.start_program(name, command, environment, log)

    def start_program(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        """Starts another program, which outlives its parent if the parent is killed."""
        self._restarts[name] = lambda: subprocess.Popen(
            command,
            env={**os.environ, **(environment or {}), PARENT_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C reaches only the parent, which ends its children in order. They stay in its
            # session: Linux divides CPU time among sessions first (autogroup). In other sessions
            # a process with a reply to handle would queue behind another node's reads
            process_group=0,
        )
        self._children[name] = self._restarts[name]()

    def wait(self, name: str) -> int:
        """Waits until a child has ended; returns its exit code."""
        return self._children[name].wait()

    def restart(self, name: str) -> None:
        """Restarts a child that has ended, with the same arguments."""
        self._children[name] = self._restarts[name]()

    def exit_codes(self) -> dict[str, int]:
        """Exit codes of the children that have ended."""
        codes = {name: child.poll() for name, child in self._children.items()}
        return {name: code for name, code in codes.items() if code is not None}

    def pid(self, name: str) -> int:
        """The process id of a child."""
        return self._children[name].pid

    def pids(self) -> list[int]:
        """The process ids of the children."""
        return [child.pid for child in self._children.values()]

    def send(self, name: str, number: signal.Signals) -> None:
        """Sends a signal to a child; nothing happens if it has ended."""
        self._children[name].send_signal(number)

    def stop(self) -> None:
        """Ends all children, the last started first, and kills those that do not end in time.

        If this method is interrupted, it kills all children immediately.
        """
        try:
            for child in reversed(self._children.values()):
                if child.poll() is None:
                    child.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + _GRACE
            for child in self._children.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(max(deadline - time.monotonic(), 0.1))
        finally:  # also after a second Ctrl-C; a third one must not stop the kills
            for child in self._children.values():
                child.kill()
            for child in self._children.values():
                child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def run_to_end(arguments: Sequence[str]) -> int:
    """Runs `winnow ARGUMENTS` as a child; returns its exit code.

    After Ctrl-C or SIGTERM the child cleans up, and says how to resume, before KeyboardInterrupt is
    raised. `subprocess.run` would kill it a quarter of a second later. A second Ctrl-C kills it.
    """
    with Processes() as processes:
        processes.start("child", arguments)
        return processes.wait("child")
