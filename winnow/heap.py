"""Returns free memory of the C library's heap to the operating system.

By itself, glibc returns only free memory at the end of its heap. After thousands of calls, free
blocks lie between used blocks: a front node kept 100 MB after 5,000 health watches. The same
happens on a content node whose shard is merged repeatedly.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
from collections.abc import Callable
from typing import Any

_M_ARENA_MAX = -8
"""Constant of glibc's malloc.h."""
_ARENAS = 2
"""Maximum number of arenas. Two suffice: a model run takes only a hundred blocks per passage."""
_ARENAS_VARIABLE = "MALLOC_ARENA_MAX"
_PAUSE = 2.0
"""Seconds between a release of memory and the trim. Meanwhile more memory may be released."""


def bound_arenas() -> None:
    """Limits the process to two malloc arenas; call it before threads start.

    By default, glibc creates up to eight arenas per core. Different threads load successive
    generations of a shard, in different arenas. Each arena would keep the memory of a generation,
    because a few used blocks prevent its release. MALLOC_ARENA_MAX takes precedence. Does nothing
    without glibc.
    """
    if not os.environ.get(_ARENAS_VARIABLE):
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def trim_function() -> Callable[[], object] | None:
    """Returns a function that trims the heap; None without glibc.

    A trim of 100 MB takes 50 milliseconds. It does not hold the interpreter lock.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return lambda: trim(0)


def trim_heap() -> None:
    """Trims the heap now. Blocks for milliseconds, so do not call it on an event loop."""
    trim = trim_function()
    if trim is not None:
        trim()


def collect_closed() -> None:
    """Frees large objects that were just closed, such as a shard, although they are in cycles.

    Otherwise their memory, and the disk space of their deleted files, would stay in use: the
    garbage collector ignores all objects from the start of a server (`winnow.rpc.service`), and
    visits others rarely. Blocks for about 0.1 s, so call it only after something large was closed.
    """
    is_frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect()
    if is_frozen:
        gc.freeze()


class HeapTrimmer:
    """Trims the heap in a thread, some time after a large release of memory."""

    def __init__(self, trim: Callable[[], object] | None, pause: float = _PAUSE) -> None:
        """`trim`: the result of `trim_function`; `pause`: seconds before a trim."""
        self._trim, self._pause = trim, pause
        self._scheduled = False

    def schedule_trim(self) -> None:
        """Schedules a trim on the running event loop, unless one is already scheduled."""
        if self._trim is not None and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_later(self._pause, self._start_trim, self._trim)

    def _start_trim(self, trim: Callable[[], object]) -> None:
        self._scheduled = False
        asyncio.get_running_loop().run_in_executor(None, trim)


_FLOOD = 1_000
"""Decrease in calls in flight, at about 20 KB each, that is worth a trim."""


class IdleTrimmer(HeapTrimmer):
    """Counts the calls in flight of a server, and trims the heap after a flood of calls."""

    def __init__(
        self, trim: Callable[[], object] | None, flood: int = _FLOOD, pause: float = _PAUSE
    ) -> None:
        """`trim`, `pause`: see `HeapTrimmer`; `flood`: decrease in calls that is worth a trim."""
        super().__init__(trim, pause)
        self._flood = flood
        self._in_flight = self._peak = 0
        """Number of calls in flight, and its maximum since the last trim."""

    def count_call(self, context: Any) -> None:
        """Counts a call as in flight until its context reports the end."""
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        context.add_done_callback(self._uncount_call)

    def _uncount_call(self, _context: Any) -> None:
        self._in_flight -= 1
        if self._peak - self._in_flight >= self._flood:
            self.schedule_trim()

    def _start_trim(self, trim: Callable[[], object]) -> None:
        self._peak = self._in_flight
        super()._start_trim(trim)
