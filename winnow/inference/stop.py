"""Ending runs of models from another thread.

Knows how each run that goes on is ended; does not know which runtime runs it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """Says that nobody waits any more, to all that work on one thing. Once set, it stays so."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Callable[[], None]] = []
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether to stop."""
        return self._set

    def set(self) -> None:
        """Ends every run that goes on, and every later one as it begins; waits for none."""
        with self._lock:
            self._set = True
            for end in self._running:
                end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `end` ends a run: quickly, from any thread, at once if it is set.

        It is never called later, when what it ends may be somebody else's run.
        """
        with self._lock:
            self._running.append(end)
            if self._set:
                end()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(end)
