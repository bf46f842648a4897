"""Stops runs of models from another thread.

Knows how to stop each run; does not know its runtime.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stop:
    """The signal to all threads that work for a call to stop. Once set, it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Callable[[], None]] = []
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether the call was cancelled."""
        return self._set

    def set(self) -> None:
        """Stops all registered runs, and later ones as they begin. Does not wait for them."""
        with self._lock:
            self._set = True
            for end in self._running:
                end()

    @contextmanager
    def on_stop(self, end: Callable[[], None]) -> Iterator[None]:
        """Registers `end` within the context. It must stop a run, quickly and from any thread.

        If `set` was called before, `end` is called immediately. After the context it is never
        called, because it might stop another run.
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
