"""Runs the merge of a shard as a child process.

The process is started, not forked, since a node has threads and gRPC. On Linux the kernel ends it
with the thread that started it, so that thread waits for it.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from winnow.content_node.merging.protocol import Merged, MergeFailed, of_line
from winnow.errors import UnavailableError, WinnowError
from winnow.parent import PARENT_VARIABLE

_LAST_LINES = 20
"""Lines of a process without a result that its error quotes."""


class MergeChild:
    """The process of one merge; runs once."""

    def __init__(self, *, base: Path, shard: Path, upto: int, bundle: Path | None = None) -> None:
        """Merges `base` and the log of `shard` up to a write.

        With a bundle, precomputed states of its reader beside the base are carried on.
        """
        self._arguments: Sequence[str] = (
            *(sys.executable, "-m", __package__ or ""),
            *(str(base), str(shard), str(upto), *([str(bundle)] if bundle else [])),
        )
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> Merged:
        """Waits for the end of the process. Raises WinnowError, with the reason, if it failed."""
        try:
            code, lines = self._wait()
        except OSError as error:
            raise UnavailableError(f"no process could be started: {error}") from error
        result = next((found for line in reversed(lines) if (found := of_line(line))), None)
        if isinstance(result, Merged) and not code:
            return result
        if isinstance(result, MergeFailed):
            raise WinnowError(result.reason)
        output = "".join(f"\n{line}" for line in lines)
        raise WinnowError(f"the process ended with exit code {code}{output}")

    def stop(self) -> None:
        """Kills the process if it runs; from any thread."""
        self._stopped.set()
        if self._process is not None:
            self._process.kill()

    def _wait(self) -> tuple[int, Sequence[str]]:
        """The exit code and the last lines of the output."""
        with subprocess.Popen(
            self._arguments,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Ctrl-C goes to the node, which ends the process
            process_group=0,
        ) as process:
            self._process = process
            if self._stopped.is_set():
                process.kill()
            lines = deque((line.rstrip() for line in process.stdout or ()), _LAST_LINES)
            return process.wait(), lines
