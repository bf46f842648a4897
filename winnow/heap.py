"""Returns free memory of the C library's heap to the system.

By itself, glibc returns only free memory at the end of its heap. After thousands of calls, freed
blocks are between used ones: a front node kept 100 MB after 5,000 health watches. The same happens
to a content node whose shard is merged repeatedly.
"""

import asyncio
import contextlib
import ctypes
import os
from collections.abc import Callable
from typing import Any

_M_ARENA_MAX = -8
"""Constant of glibc's malloc.h."""
_ARENAS = 2
"""Limit of arenas. Two suffice, as running a model takes only some hundred blocks per passage."""
_ARENAS_VARIABLE = "MALLOC_ARENA_MAX"
_PAUSE = 2.0
"""Seconds between a release and the trim, in which more memory may be released."""


def bound_arenas() -> None:
    """Limits the process to two malloc arenas; call it before threads start.

    By default, glibc creates eight per core. Successive generations of a shard are loaded by
    different threads, in different arenas. Each arena would keep the memory of a generation,
    because some used blocks prevent a trim. MALLOC_ARENA_MAX takes precedence. Does nothing
    without glibc.
    """
    if not os.environ.get(_ARENAS_VARIABLE):
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def trim_function() -> Callable[[], object] | None:
    """Returns a function that trims the heap; None without glibc.

    A trim of 100 MB takes 50 milliseconds, without the interpreter's lock.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)


def trim_heap() -> None:
    """Trims the heap now. It blocks for milliseconds, so do not call it on an event loop."""
    trim = trim_function()
    if trim is not None:
        trim()


class HeapTrimmer:
    """Trims the heap in a thread, some time after a large release."""

    def __init__(self, trim: Callable[[], object] | None, pause: float = _PAUSE) -> None:
        """`trim`: a result of `trim_function`; `pause`: seconds before a trim."""
        self._trim, self._pause = trim, pause
        self._scheduled = False

    def schedule(self) -> None:
        """Schedules a trim on the running event loop, unless one is scheduled already."""
        if self._trim is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(self._pause, self._start_trim, self._trim)

    def _start_trim(self, trim: Callable[[], object]) -> None:
        self._scheduled = False
        asyncio.get_running_loop().run_in_executor(None, trim)


_FLOOD = 1_000
"""Number of calls, of some 20 KB each, whose end is worth a trim."""


class IdleTrimmer(HeapTrimmer):
    """Counts the calls in flight of a server, and trims the heap after a flood of calls."""

    def __init__(
        self, trim: Callable[[], object] | None, flood: int = _FLOOD, pause: float = _PAUSE
    ) -> None:
        """`trim`: a result of `trim_function`; `pause`: seconds before a trim."""
        super().__init__(trim, pause)
        self._flood = flood
        self._in_flight = self._peak = 0
        """Calls in flight, and their maximum since the last trim."""

    def count_call(self, context: Any) -> None:
        """Counts a call until its context reports its end."""
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        context.add_done_callback(self._uncount_call)

    def _uncount_call(self, _context: Any) -> None:
        self._in_flight -= 1
        if self._peak - self._in_flight >= self._flood:
            self.schedule()

    def _start_trim(self, trim: Callable[[], object]) -> None:
        self._peak = self._in_flight
        super()._start_trim(trim)
