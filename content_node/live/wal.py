"""The unfinished end of SQLite's write-ahead log, which SQLite drops silently.

Knows the format (https://www.sqlite.org/fileformat2.html#walformat); reads, and changes nothing.
Holds one page at a time, since the file may have gigabytes.
"""

import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

_HEADER = struct.Struct(">8I")
"""The header: magic, version, page size, checkpoint, two salts, two checksums."""
_FRAME = struct.Struct(">6I")
"""The head of a frame: page, pages after a commit or 0, two salts, two checksums."""
_MAGIC = 0x377F0682
_SUMMED_OF_HEADER, _SUMMED_OF_FRAME = 24, 8
"""The bytes that the checksums cover; salts and checksums follow them."""
_WORD = 2**32


@dataclass(frozen=True, slots=True)
class _Wal:
    """A valid header."""

    words: str
    """The type of the integers that the checksums add up."""
    page: int
    salts: tuple[int, int]
    sums: tuple[int, int]


def unfinished(path: Path) -> int:
    """The bytes that an interrupted commit left after the last one; 0 if there is no file.

    Raises:
        OSError: the file cannot be read.

    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            wal = _header(file.read(_HEADER.size))
            return size if wal is None else _after_commits(file, size, wal)
    except FileNotFoundError:
        return 0


def _header(data: bytes) -> _Wal | None:
    if len(data) < _HEADER.size:
        return None
    magic, _, page, _, *salts, first, second = _HEADER.unpack(data)
    words = ">u4" if magic & 1 else "<u4"
    sums = _summed((0, 0), np.frombuffer(data, words, _SUMMED_OF_HEADER // 4))
    if magic & ~1 != _MAGIC or sums != (first, second) or not page or page % 8:
        return None
    return _Wal(words, page, (salts[0], salts[1]), sums)


def _after_commits(file: BinaryIO, size: int, wal: _Wal) -> int:
    """The bytes of `size` after the last commit; reads `file` frame by frame after its header."""
    place = committed = _HEADER.size
    sums = wal.sums
    while len(data := file.read(_FRAME.size + wal.page)) == _FRAME.size + wal.page:
        _, pages, *salts, first, second = _FRAME.unpack_from(data)
        frame = np.frombuffer(data, wal.words)
        summed = np.concatenate([frame[: _SUMMED_OF_FRAME // 4], frame[_FRAME.size // 4 :]])
        sums = _summed(sums, summed)
        if tuple(salts) != wal.salts or sums != (first, second):
            break
        place += len(data)
        committed = place if pages else committed
    # frames of an earlier round may follow, with its salts: their pages are in the database
    return place - committed + _begun(data, size - place, wal)


def _begun(data: bytes, left: int, wal: _Wal) -> int:
    """The `left` bytes after the last whole frame if they are of this round, else 0. They begin
    with `data`, and the end of the interrupted commit is not known.
    """
    if left < _FRAME.size:
        return left
    _, _, *salts, _, _ = _FRAME.unpack_from(data)
    return left if tuple(salts) == wal.salts else 0


def _summed(before: tuple[int, int], words: NDArray[np.uint32]) -> tuple[int, int]:
    """SQLite's checksum: each sum adds the two sums before it and a word, modulo 2 ** 32."""
    weights = _fibonacci(len(words) + 1)
    ends = []
    for last in (len(words) - 1, len(words)):
        own = words[:last] * weights[:last][::-1]
        carried = int(weights[last - 1]) * before[0] + int(weights[last]) * before[1]
        ends.append((int(own.sum(dtype=np.uint32)) + carried) % _WORD)
    return ends[0], ends[1]


@lru_cache
def _fibonacci(count: int) -> NDArray[np.uint32]:
    values = [1, 1]
    while len(values) < count:
        values.append((values[-1] + values[-2]) % _WORD)
    return np.array(values[:count], np.uint32)
