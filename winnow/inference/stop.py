"""Ends runs of models from another thread.

Knows how to end each run; does not know which runtime runs it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """Tells all threads that work for a call that it was given up. Once set, it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Callable[[], None]] = []
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether the call was given up."""
        return self._set

    def set(self) -> None:
        """Ends all runs, and later ones as they begin; waits for none."""
        with self._lock:
            self._set = True
            for end in self._running:
                end()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Registers `end`, which ends a run quickly and from any thread, for as long as the block
        lasts; it is called at once if `set` was called. After the block it is never called, since
        it might end another run.
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
