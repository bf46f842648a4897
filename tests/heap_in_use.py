"""How much memory of the heap is in use, as glibc counts it."""

import ctypes
import gc
from collections.abc import Awaitable, Callable

import needs
import pytest

counted = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason=needs.GLIBC)


class _Memory(ctypes.Structure):
    """`struct mallinfo2` of malloc.h, whose eighth number counts bytes that are not free."""

    _fields_ = [(f"number_{place}", ctypes.c_size_t) for place in range(10)]


def in_use() -> int:
    """Bytes that are not free in the heap of the main thread, which runs the loop."""
    gc.collect()
    told = ctypes.CDLL(None).mallinfo2
    told.restype = _Memory
    return int(told().number_7)


async def kept(give_up: Callable[[int], Awaitable[None]], calls: int, most: float) -> float:
    """Bytes that each call leaves in the heap, on average over all rounds of this many calls.

    One round may be off by a megabyte, since gRPC frees some of its memory late. A round follows
    until the average is below `most`, up to five: what is kept for ever shows in each of them.
    """
    await give_up(calls // 4)
    before, each = in_use(), 0.0
    for rounds in range(1, 6):
        await give_up(calls)
        each = (in_use() - before) / (calls * rounds)
        if each < most:
            break
    return each
