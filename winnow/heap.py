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
"""Running models takes only some hundred blocks for each passage: two arenas suffice."""
_ARENAS_VARIABLE = "MALLOC_ARENA_MAX"
_PAUSE = 2.0
"""Seconds in which the rest is freed, and more may be released."""


def bound_arenas() -> None:
    """Limits all threads to two arenas of memory; call it before there are threads.

    glibc would make eight for each core. A thread loads each generation of a shard, so successive
    generations would be in different arenas. Each arena would then keep room for a generation, with
    some blocks in use that keep it from being trimmed. A number that the environment sets stays.
    Does nothing where the C library is not glibc.
    """
    if not os.environ.get(_ARENAS_VARIABLE):
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def trimming() -> Callable[[], object] | None:
    """The function that returns all free pages to the system; None where the C library is not
    glibc.

    It takes milliseconds, 50 for 100 MB, without the interpreter's lock.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)


def give_back() -> None:
    """Returns all free pages to the system; takes milliseconds, so not for an event loop."""
    trim = trimming()
    if trim is not None:
        trim()


class HeapTrimmer:
    """Returns free memory to the system, in a thread, some time after a large release."""

    def __init__(self, trim: Callable[[], object] | None, pause: float = _PAUSE) -> None:
        """`trim` is the result of `trimming`."""
        self._trim, self._pause = trim, pause
        self._waiting = False

    def soon(self) -> None:
        """Trims the heap after a pause; once, however often it is called meanwhile. For an event
        loop.
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
"""Seconds in which the last calls are put away, and the rest of a flood may end."""


class IdleTrimmer:
    """Counts the calls in hand of a server, and trims the heap once a flood of calls has ended."""

    def __init__(
        self, trim: Callable[[], object] | None, flood: int = _FLOOD, pause: float = _IDLE_PAUSE
    ) -> None:
        """`trim` is the result of `trimming`."""
        self._trim, self._flood, self._pause = trim, flood, pause
        self._in_hand = self._most = 0
        """Calls now, and the most since the heap was trimmed."""
        self._waiting = False

    def begin(self, context: Any) -> None:
        """Counts a call until its context reports its end."""
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
