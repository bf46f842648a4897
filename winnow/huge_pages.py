"""Backs large blocks of memory by huge pages, where Linux has them.

A graph search reads vectors all over a block of hundreds of megabytes. With pages of 4 KiB, the
processor looks up the address of nearly each of them in memory.
"""

import contextlib
import ctypes
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_MODES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Says when the system uses huge pages: `always [madvise] never`, for example."""
_MAPS = Path("/proc/self/maps")
_ANONYMOUS = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *")
"""A line of the file: addresses, permissions, offset, device and inode of writable memory."""
_HUGE_BYTES = 2 << 20
"""Size of a huge page on x86-64, and on 64-bit ARM with pages of 4 KiB."""
_MIN_BYTES = 32 << 20
"""Smallest block to back. The C library maps blocks of this size separately, and unmaps them when
they are freed. Huge pages in its heap could keep free memory in use.
"""
_MADV_HUGEPAGE, _MADV_COLLAPSE = 14, 25
"""Constants of Linux: the second one needs version 6.1."""
Ranges = Sequence[tuple[int, int]]
"""Ascending ranges of addresses: begin and end."""


@contextlib.contextmanager
def huge_pages() -> Iterator[None]:
    """Backs large blocks that are allocated meanwhile, once they are filled. Blocks for a second
    per half gigabyte.

    Does nothing if the system has no huge pages, or uses none.
    """
    before = _mapped_ranges()
    yield
    if before:
        _advise(added_ranges(before, _mapped_ranges()))


def added_ranges(before: Ranges, after: Ranges) -> list[tuple[int, int]]:
    """Returns the parts of `after` that are not in `before`."""
    added = []
    for begin, end in after:
        free = begin
        for known_begin, known_end in before:
            if known_end > free and known_begin < end:
                added.append((free, known_begin))
                free = known_end
        added.append((free, end))
    return [(begin, end) for begin, end in added if begin < end]


def _mapped_ranges() -> list[tuple[int, int]]:
    """Returns the writable ranges without a file; none if the system uses no huge pages."""
    try:
        if "[never]" in _MODES.read_text(encoding="ascii"):
            return []
        lines = _MAPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    ranges = [found.groups() for line in lines if (found := _ANONYMOUS.fullmatch(line))]
    return [(int(begin, 16), int(end, 16)) for begin, end in ranges]


def _advise(ranges: Ranges) -> None:
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for begin, end in ranges:
        if end - begin >= _MIN_BYTES:
            first = -(-begin // _HUGE_BYTES) * _HUGE_BYTES
            size = end // _HUGE_BYTES * _HUGE_BYTES - first
            for advice in (_MADV_HUGEPAGE, _MADV_COLLAPSE):  # advice: a failure changes nothing
                advise(first, size, advice)
