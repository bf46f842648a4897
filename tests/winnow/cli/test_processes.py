"""Children never outlive their parent."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tenacious import LONG

from winnow.cli.local.processes import Processes, run_to_end
from winnow.parent import PARENT_VARIABLE


@dataclass
class Stubborn:
    """A child that does not end by itself. A second Ctrl-C interrupts waiting for it, or (`told`)
    sending a signal to it; or (`late`) a third one interrupts waiting after it was killed.
    """

    killed: bool = False
    told: bool = False
    late: bool = False

    def poll(self) -> int | None:
        return -9 if self.killed else None

    def send_signal(self, number: int) -> None:
        if self.told:
            raise KeyboardInterrupt

    def wait(self, timeout: float | None = None) -> int:
        if self.late or not self.killed:
            raise KeyboardInterrupt
        return -9

    def kill(self) -> None:
        self.killed = True


@pytest.mark.parametrize("first", [Stubborn(), Stubborn(told=True), Stubborn(late=True)])
def test_further_ctrl_cs_end_every_child_at_once(first: Stubborn) -> None:
    processes = Processes()
    children = {"front": replace(first), "node 0": replace(first)}
    stubborn: Any = children
    processes._children = stubborn
    with pytest.raises(KeyboardInterrupt):
        processes.stop()
    assert all(child.killed for child in children.values())


def test_a_child_does_not_tell_its_own_children_that_they_are_its_parents() -> None:
    code = (
        "import os; from winnow.parent import die_with_parent; die_with_parent();"
        f"print(os.environ.get({PARENT_VARIABLE!r}))"
    )
    environment = {**os.environ, PARENT_VARIABLE: str(os.getpid())}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "None\n"


def test_an_interrupted_child_ends_by_itself_before_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build says how to resume, and shows the cursor of the terminal again."""
    code = (
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "signal.sigwait([signal.SIGTERM])\n"
        "open(sys.argv[1], 'w').close()\n"
    )

    def start(self: Processes, name: str, arguments: Sequence[str]) -> None:
        came: list[int] = []
        # until the child is known, Ctrl-C would leave it behind
        usual = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
        self.start_program(name, [sys.executable, "-c", code, *arguments])
        signal.signal(signal.SIGINT, usual)
        if came:
            raise KeyboardInterrupt

    monkeypatch.setattr(Processes, "start", start)
    monkeypatch.setattr("winnow.cli.local.processes._GRACE", LONG)
    with pytest.raises(KeyboardInterrupt):
        run_to_end([str(tmp_path / "ended")])
    assert (tmp_path / "ended").exists()


def test_a_child_writes_to_a_terminal_that_stops_background_output() -> None:
    """After `stty tostop`, a build would stop for ever at its first line."""
    code = (
        "import os, pty, sys, termios\n"
        "from winnow.cli.local.processes import run_to_end\n"
        "child, terminal = pty.fork()\n"
        "if not child:\n"
        "    modes = termios.tcgetattr(1)\n"
        "    modes[3] |= termios.TOSTOP\n"
        "    termios.tcsetattr(1, termios.TCSANOW, modes)\n"
        "    os._exit(run_to_end(['--version']))\n"
        "sys.stdout.write(os.read(terminal, 1000).decode())\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONG
    )
    assert ran.stdout.startswith("winnow ")
