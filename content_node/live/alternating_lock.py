"""A lock for two threads that goes to the one that waits.

A lock alone goes again and again to the thread that lets go of it and wants it back at once.
"""

import threading
from types import TracebackType


class AlternatingLock:
    """A lock, held in `with`."""

    def __init__(self) -> None:
        self._next, self._turn = threading.Lock(), threading.Lock()

    @property
    def awaited(self) -> bool:
        """Whether somebody comes next."""
        return self._next.locked()

    def __enter__(self) -> None:
        with self._next:
            self._turn.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._turn.release()
