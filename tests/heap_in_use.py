"""How much memory of the heap is in use, as glibc counts it."""

import ctypes
import gc

import pytest

counted = pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="memory is counted by glibc only"
)


class _Memory(ctypes.Structure):
    """`struct mallinfo2` of malloc.h, whose eighth number counts bytes that are not free."""

    _fields_ = [(f"number_{place}", ctypes.c_size_t) for place in range(10)]


def in_use() -> int:
    """Bytes that are not free in the heap of the main thread, which runs the loop."""
    gc.collect()
    told = ctypes.CDLL(None).mallinfo2
    told.restype = _Memory
    return int(told().number_7)
