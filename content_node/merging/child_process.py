"""Runs the merge or the split of a shard as a child process.

The process is started, not forked, since a node has threads and gRPC. On Linux the kernel ends the
process when the thread that started it ends. Therefore this thread waits for the process.
"""

import contextlib
import os
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import structlog

from winnow.content_node.merging.names import LIVE
from winnow.content_node.merging.protocol import Merged, MergeFailed, parse_result
from winnow.errors import UnavailableError, WinnowError
from winnow.parent import PARENT_VARIABLE
from winnow.python_command import python_command

_log = structlog.get_logger("content_node")
_LAST_LINES = 20
"""Number of last lines of output that the error quotes if a process ends without a result."""


class WritingChild:
    """A child process that writes a generation of a shard; runs once."""

    def __init__(self, package: str, *arguments: str) -> None:
        """Prepares to run a Python package, which prints its result in the format of `protocol`."""
        self._package, self._arguments = package, arguments
        self._descriptors: Sequence[int] = ()
        """Open files that the process inherits."""
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> Merged:
        """Runs the process and returns its result. Raises WinnowError if it failed."""
        try:
            code, lines = self._run_process()
        except OSError as error:
            raise UnavailableError(
                f"the process of a merge or split could not be started: {error}"
            ) from error
        result = next(filter(None, map(parse_result, reversed(lines))), None)
        if isinstance(result, Merged) and not code:
            return result
        if isinstance(result, MergeFailed):
            raise WinnowError(result.reason)
        output = "".join(f"\n{line}" for line in lines)
        raise WinnowError(f"the process of a merge or split ended with exit code {code}{output}")

    def stop(self) -> None:
        """Kills the process if it runs; may be called from any thread."""
        self._stopped.set()
        if self._process is not None:
            self._process.kill()

    def _run_process(self) -> tuple[int, Sequence[str]]:
        """Runs the process; returns its exit code and the last lines of its output."""
        with subprocess.Popen(
            python_command(self._package, *self._arguments),
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=self._descriptors,
            # Ctrl-C then reaches only the node, which ends the process
            process_group=0,
        ) as process:
            self._process = process
            if self._stopped.is_set():
                process.kill()
            lines = deque((line.rstrip() for line in process.stdout or ()), _LAST_LINES)
            return process.wait(), lines


class MergeChild(WritingChild):
    """The child process of one merge."""

    def __init__(
        self,
        *,
        base: Path,
        shard: Path,
        upto: int,
        bundle: Path | None = None,
        write_tokens: Callable[[IO[bytes]], None] | None = None,
    ) -> None:
        """Prepares to merge `base` and the log of `shard` up to the write `upto`.

        With a bundle, precomputed data of its models is carried from the base to the result.
        `write_tokens` writes token vectors of unmerged passages to a file, as `handed_tokens` does.
        """
        states = [str(bundle)] if bundle else []
        super().__init__(__package__ or "", str(base), str(shard), str(upto), *states)
        self._directory, self._write_tokens = shard, write_tokens if bundle else None

    def run(self) -> Merged:
        """Runs the process and returns its result. Raises WinnowError if it failed."""
        if self._write_tokens is None:
            return super().run()
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(TemporaryFile(dir=self._directory / LIVE))
                self._write_tokens(file)
            except (OSError, WinnowError) as error:  # the merge computes the token vectors then
                _log.warning("token vectors were not handed to a merge", reason=str(error))
                with contextlib.suppress(OSError):  # closing tries to write the rest again
                    stack.close()
            else:
                self._descriptors = (file.fileno(),)
                self._arguments = (*self._arguments, str(file.fileno()))
            return super().run()
