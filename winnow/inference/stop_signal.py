"""A signal that stops the model runs of a call from another thread.

Each run registers a function that stops it, so the signal is independent of the runtime.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class StopSignal:
    """A stop signal for all threads that work for one call. Once set, it stays set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[Callable[[], None]] = []
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._set

    def set(self) -> None:
        """Stops all registered runs, and later runs when they register. Does not wait for them."""
        with self._lock:
            self._set = True
            for end in self._running:
                end()

    @contextmanager
    def on_stop(self, end: Callable[[], None]) -> Iterator[None]:
        """Registers `end` within the context. `end` must stop a run, quickly and from any thread.

        If the signal is already set, `end` is called immediately. After the context, `end` is never
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
