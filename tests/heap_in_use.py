"""Memory in use on the heap, as counted by glibc."""

import ctypes
import gc
from collections.abc import Awaitable, Callable

import needs
import pytest

counted = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason=needs.GLIBC)


class _Memory(ctypes.Structure):
    """`struct mallinfo2` of malloc.h; its eighth number counts the bytes in use."""

    _fields_ = [(f"number_{place}", ctypes.c_size_t) for place in range(10)]


def in_use() -> int:
    """Returns the bytes in use in the heap of the main thread, which runs the event loop."""
    gc.collect()
    told = ctypes.CDLL(None).mallinfo2
    told.restype = _Memory
    return int(told().number_7)


async def kept(give_up: Callable[[int], Awaitable[None]], calls: int, most: float) -> float:
    """Returns the average number of bytes that each call leaves on the heap.

    One round of `calls` may be off by a megabyte, because gRPC frees some memory late. So up to
    five rounds run, until the average is below `most`. A leak shows in every round.
    """
    await give_up(calls // 4)
    before, each = in_use(), 0.0
    for rounds in range(1, 6):
        await give_up(calls)
        each = (in_use() - before) / (calls * rounds)
        if each < most:
            break
    return each
