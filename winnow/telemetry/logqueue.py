"""A queue of lines for a log that may be slow, full or gone.

Logging only puts a line into the bounded queue, which neither waits nor fails; one thread writes.
Knows nothing of the content of lines.
"""

import queue
import threading
from collections.abc import Callable, Iterator

_ATOMIC = 4_096
"""Bytes that a pipe takes at once (PIPE_BUF on Linux): lines of several writers do not mix."""
_AT_ONCE = 100
"""Most lines to take at once."""
_WAKE, _END = b"", None


class LogQueue:
    """Writes lines in one thread; counts the lines that cannot be written."""

    def __init__(
        self,
        write: Callable[[bytes], None],
        most: int,
        tick: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Begins to write.

        Args:
            write: writes whole lines; may block, or raise OSError or ValueError.
            most: lines that may wait.
            tick: called by the thread now and then; returns the seconds until it wants to be called
                again, or None if lines have to come first.

        """
        self._write, self._most, self._tick = write, most, tick
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # a thread may enter twice: garbage collection in between may log, too
        self._dropped, self._counting = 0, threading.RLock()
        self._closed = False
        # a daemon: the process ends also while a write hangs
        self._thread = threading.Thread(target=self._run, name="logs", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Lines that were not written."""
        return self._dropped

    def put(self, line: str) -> None:
        """Hands a line over; drops it if too many wait. Does not block, does not raise."""
        if self._closed or self._lines.qsize() >= self._most:
            self.lost(1)
        else:
            # half a character of a pair that no UTF-8 can hold is no reason to lose the line
            self._lines.put(line.encode(errors="backslashreplace") + b"\n")

    def lost(self, lines: int) -> None:
        """Counts lines that will not be written."""
        with self._counting:
            self._dropped += lines

    def wake(self) -> None:
        """Has `tick` called soon."""
        self._lines.put(_WAKE)

    def close(self, patience: float) -> None:
        """Writes the waiting lines, for `patience` seconds at most; later lines are dropped."""
        self._closed = True
        self._lines.put(_END)
        self._thread.join(patience)

    def _run(self) -> None:
        going = True
        while going:
            lines = self._next()
            going = _END not in lines
            for batch in _batches(lines):
                try:
                    self._write(b"".join(batch))
                except (OSError, ValueError):  # full, gone or closed: the service goes on
                    self.lost(len(batch))

    def _next(self) -> list[bytes | None]:
        """The waiting lines, or the next one; empty if `tick` is due first."""
        lines: list[bytes | None] = []
        try:
            lines.append(self._lines.get(timeout=self._tick()))
            while len(lines) < _AT_ONCE:
                lines.append(self._lines.get_nowait())
        except queue.Empty:
            pass
        return lines


def _batches(lines: list[bytes | None]) -> Iterator[list[bytes]]:
    """Lines that can be written at once.

    Writing one by one would take a turn of the interpreter each, which a busy event loop gives only
    two hundred times a second.
    """
    batch: list[bytes] = []
    for line in filter(None, lines):
        if batch and sum(map(len, batch)) + len(line) > _ATOMIC:
            yield batch
            batch = []
        batch.append(line)
    if batch:
        yield batch
