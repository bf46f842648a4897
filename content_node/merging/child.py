"""The merge of a shard as a process of its own.

Started anew, not forked: a node has threads, and gRPC. The kernel ends it with the thread that
started it (Linux), so that thread waits for it.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from winnow.content_node.merging.protocol import Heard, Merged
from winnow.errors import UnavailableError, WinnowError
from winnow.parent import PARENT_VARIABLE

Tell = Callable[[str], None]


class MergeChild:
    """One merge; to be run once."""

    def __init__(
        self,
        *,
        base: Path,
        shard: Path,
        upto: int,
        tell: Tell = lambda _: None,
        bundle: Path | None = None,
    ) -> None:
        """Merges `base` and the log of `shard` up to a write; `tell` is called with each stage.

        With a bundle, states of its reader that lie beside the base are carried on.
        """
        self._arguments: Sequence[str] = (
            *(sys.executable, "-m", __package__ or ""),
            *(str(base), str(shard), str(upto), *([str(bundle)] if bundle else [])),
        )
        self._tell = tell
        self._stopped = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def run(self) -> Merged:
        """Waits for its end. Raises WinnowError if it failed or was ended, for the reason that the
        error gives.
        """
        heard = Heard()
        try:
            code = self._follow(heard)
        except OSError as error:
            raise UnavailableError(f"no process could be started: {error}") from error
        if isinstance(heard.result, Merged) and not code:
            return heard.result
        if heard.result is not None and not isinstance(heard.result, Merged):
            raise WinnowError(heard.result.reason)
        raise WinnowError(f"the process ended with exit code {code}{heard.last_words}")

    def stop(self) -> None:
        """Ends it if it runs; from any thread."""
        self._stopped.set()
        if self._process is not None:
            self._process.kill()

    def _follow(self, heard: Heard) -> int:
        with subprocess.Popen(
            self._arguments,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # Ctrl-C goes to the node, which ends it
            process_group=0,
        ) as process:
            self._process = process
            if self._stopped.is_set():
                process.kill()
            for line in process.stdout or ():
                if stage := heard.line(line):
                    self._tell(stage.name)
            return process.wait()
