"""Returns free memory of the C library's heap to the system.

glibc returns only the end of its heap by itself. After thousands of calls, freed blocks lie between
blocks in use: a front node kept 100 MB of 5,000 health watches until it had more to do. The same
happens to a content node whose shard is merged again and again.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any

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


_FLOOD = 1_000
"""Calls, some 20 KB each."""
_IDLE_PAUSE = 2.0
"""Seconds in which what they left is put away, and the rest of a flood may end."""


class IdleTrimmer:
    """The calls in hand of a server."""

    def __init__(
        self, trim: Callable[[], object] | None, flood: int = _FLOOD, pause: float = _IDLE_PAUSE
    ) -> None:
        """`trim` gives back memory, in a thread; None where that cannot be done."""
        self._trim, self._flood, self._pause = trim, flood, pause
        self._in_hand = self._most = 0
        """Now, and at most since memory was given back."""
        self._waiting = False

    def begin(self, context: Any) -> None:
        """A call has begun; its context tells when it ends."""
        self._in_hand += 1
        self._most = max(self._most, self._in_hand)
        context.add_done_callback(self._end)

    def _end(self, _context: Any) -> None:
        self._in_hand -= 1
        if self._trim and not self._waiting and self._most - self._in_hand >= self._flood:
            self._waiting = True
            asyncio.get_running_loop().call_later(self._pause, self._give_back, self._trim)

    def _give_back(self, trim: Callable[[], object]) -> None:
        self._waiting, self._most = False, self._in_hand
        asyncio.get_running_loop().run_in_executor(None, trim)
