"""A queue of log lines whose destination may be slow, full or closed.

Logging only adds a line to the bounded queue, which neither waits nor fails. One thread writes the
lines. Does not know the content of lines.
"""

import queue
import threading
from collections.abc import Callable, Iterator

_ATOMIC_BYTES = 4_096
"""Maximum bytes that a pipe writes atomically, unmixed with other writers (Linux's PIPE_BUF)."""
_MAX_TAKEN = 100
"""Maximum number of lines taken from the queue in one round."""
_WAKE, _END = b"", None


class LogQueue:
    """Writes lines in one thread; counts the lines that cannot be written."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        max_lines: int,
        tick: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Starts the thread.

        Args:
            write: writes whole lines; may block, or raise OSError or ValueError.
            max_lines: maximum number of waiting lines.
            tick: called by the thread before each wait for lines. Returns the maximum seconds to
                wait; None to wait until a line arrives.

        """
        self._write, self._max_lines, self._tick = write, max_lines, tick
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # reentrant: a garbage collection within the lock may log, too
        self._dropped, self._counting = 0, threading.RLock()
        self._closed = False
        # a daemon, so that the process can end while a write hangs
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Number of lines that were dropped or could not be written."""
        return self._dropped

    def put(self, line: str) -> None:
        """Adds a line; drops it if too many wait. Neither blocks nor raises."""
        if self._closed or self._lines.qsize() >= self._max_lines:
            self.count_dropped(1)
        else:
            # `backslashreplace`: lone surrogates, which UTF-8 cannot encode, must not lose the line
            self._lines.put(line.encode(errors="backslashreplace") + b"\n")

    def count_dropped(self, lines: int) -> None:
        """Counts lines that will not be written."""
        with self._counting:
            self._dropped += lines

    def wake(self) -> None:
        """Makes the thread call `tick` soon."""
        self._lines.put(_WAKE)

    def close(self, seconds: float) -> None:
        """Writes the waiting lines, for at most `seconds`; later lines are dropped."""
        self._closed = True
        self._lines.put(_END)
        self._thread.join(seconds)

    def _run(self) -> None:
        running = True
        while running:
            lines = self._wait_for_lines()
            running = _END not in lines
            for batch in _batches(lines):
                try:
                    self._write(b"".join(batch))
                except (OSError, ValueError):  # full or closed: the service continues
                    self.count_dropped(len(batch))

    def _wait_for_lines(self) -> list[bytes | None]:
        """Waits for a line, and returns the waiting lines; empty if `tick` is due first."""
        lines: list[bytes | None] = []
        try:
            lines.append(self._lines.get(timeout=self._tick()))
            while len(lines) < _MAX_TAKEN:
                lines.append(self._lines.get_nowait())
        except queue.Empty:
            pass
        return lines


def _batches(lines: list[bytes | None]) -> Iterator[list[bytes]]:
    """Groups lines into batches that a pipe writes atomically.

    Batches need fewer writes. Each write needs the interpreter lock, which a busy event loop
    releases only two hundred times per second.
    """
    batch: list[bytes] = []
    for line in filter(None, lines):
        if batch and sum(map(len, batch)) + len(line) > _ATOMIC_BYTES:
            yield batch
            batch = []
        batch.append(line)
    if batch:
        yield batch
