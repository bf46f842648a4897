"""Large blocks are backed by huge pages where the system has them."""

import ctypes
import mmap
from pathlib import Path

import needs
import numpy as np
import pytest

from winnow import huge_pages
from winnow.huge_pages import added_ranges

MODES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_BYTES = 64 << 20


def flags_of(address: int) -> list[str]:
    """Returns the kernel's flags of the mapping that contains an address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            begin, end = (int(each, 16) for each in words[0].split("-"))
            inside = begin <= address < end
        elif inside and words[0] == "VmFlags:":
            return words[1:]
    return []


def block(content: bytes) -> mmap.mmap:
    """Maps memory that is filled with a byte. NumPy would ask for huge pages itself."""
    mapped = mmap.mmap(-1, _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped.write(content * _BYTES)
    return mapped


def middle(mapped: mmap.mmap) -> int:
    """Returns the address of the middle of a block."""
    return ctypes.addressof(ctypes.c_char.from_buffer(mapped, _BYTES // 2))


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        ([], [(1, 3)], [(1, 3)]),
        ([(1, 3)], [(1, 3)], []),
        ([(4, 6)], [(1, 9)], [(1, 4), (6, 9)]),
        ([(1, 3), (5, 7)], [(1, 7), (9, 11)], [(3, 5), (9, 11)]),
        ([(2, 8)], [(4, 6)], []),
    ],
)
def test_ranges_that_were_added_are_found(
    before: list[tuple[int, int]], after: list[tuple[int, int]], added: list[tuple[int, int]]
) -> None:
    """Only addresses that were not mapped before are in the result."""
    assert added_ranges(before, after) == added


@pytest.mark.skipif(
    not MODES.exists() or "[never]" in MODES.read_text(encoding="ascii"),
    reason=needs.HUGE_PAGES,
)
def test_only_large_new_blocks_are_advised() -> None:
    """A block of 64 MiB gets the advice if it is mapped meanwhile, and keeps its content."""
    before = block(b"a")
    with huge_pages.huge_pages():
        new = block(b"b")
    assert "hg" in flags_of(middle(new))
    assert "hg" not in flags_of(middle(before))
    assert set(new[:: 1 << 20]) == set(b"b")


def test_a_system_without_huge_pages_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No memory is advised if the system says that it never uses huge pages, or says nothing."""
    monkeypatch.setattr(huge_pages, "_advise", lambda _: pytest.fail("advised"))
    for text in (None, "always madvise [never]\n"):
        modes = tmp_path / "enabled"
        if text is not None:
            modes.write_text(text, encoding="ascii")
        monkeypatch.setattr(huge_pages, "_MODES", modes)
        with huge_pages.huge_pages():
            np.zeros(16 << 20, np.float32)
