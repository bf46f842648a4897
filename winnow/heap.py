"""Giving back to the system what is free in the heap of the C library.

glibc gives back the end of its heap only. After thousands of calls have ended, what was freed lies
between what is still used: a front kept 100 MB of 5,000 health watches until it had more to do. The
same happens to a node whose shard is merged again and again.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable

_M_ARENA_MAX = -8
"""Of glibc's malloc.h."""
_ARENAS = 2
"""Running models takes some hundred blocks for each passage, so threads hardly wait for each other
at two.
"""
_ARENAS_VARIABLE = "MALLOC_ARENA_MAX"
_PAUSE = 2.0
"""Seconds in which what was let go is freed, and more may be let go."""


def bound_arenas() -> None:
    """From now on all threads take memory from two arenas; to be called before there are threads.

    glibc would make eight for each core. A generation of a shard is loaded by a thread of its own,
    so one is in this arena and the next one in that. Each arena then keeps room for a generation,
    with a few blocks in between that are still used, and trimming does not get it back. A number
    that the environment sets stays. Does nothing where the C library is not glibc.
    """
    if not os.environ.get(_ARENAS_VARIABLE):
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def trimming() -> Callable[[], object] | None:
    """What gives back every free page; None where the C library is not glibc.

    It takes milliseconds, without the interpreter's lock; for 100 MB 50.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)


def give_back() -> None:
    """Gives back every free page now; as long as `trimming` says, so not on an event loop."""
    trim = trimming()
    if trim is not None:
        trim()


class HeapTrimmer:
    """Gives free memory back a moment after something large was let go, in a thread."""

    def __init__(self, trim: Callable[[], object] | None, pause: float = _PAUSE) -> None:
        """`trim` is what `trimming` gives; None where that cannot be done."""
        self._trim, self._pause = trim, pause
        self._waiting = False

    def soon(self) -> None:
        """Gives back what is free then; once, however often this is called meanwhile. To be called
        on the event loop.
        """
        if self._trim is not None and not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_later(self._pause, self._give_back, self._trim)

    def _give_back(self, trim: Callable[[], object]) -> None:
        self._waiting = False
        asyncio.get_running_loop().run_in_executor(None, trim)
