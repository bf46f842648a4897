"""Measures the unfinished end of SQLite's write-ahead log, which SQLite drops silently.

The format: https://www.sqlite.org/fileformat2.html#walformat. The file is only read, one page at a
time, since it may have gigabytes.
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
"""Header of the file: magic, version, page size, checkpoint, two salts, two checksums."""
_FRAME_HEADER = struct.Struct(">6I")
"""Header of a frame: page number, database pages (0 unless a commit), two salts, two checksums."""
_MAGIC = 0x377F0682
_HEADER_SUMMED_BYTES, _FRAME_SUMMED_BYTES = 24, 8
"""Bytes at the beginning of the headers that the checksums cover."""
_MODULUS = 2**32


@dataclass(frozen=True, slots=True)
class _WalHeader:
    """The header of a valid write-ahead log."""

    dtype: str
    """The NumPy type of the integers that the checksums add up."""
    page_bytes: int
    salts: tuple[int, int]
    checksums: tuple[int, int]


def unfinished_bytes(path: Path) -> int:
    """Returns the bytes that an interrupted commit left after the last finished commit.

    Returns 0 if there is no file.

    Raises:
        OSError: the file cannot be read.

    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(file.read(_HEADER.size))
            return size if header is None else _bytes_after_commits(file, size, header)
    except FileNotFoundError:
        return 0


def _read_header(data: bytes) -> _WalHeader | None:
    """Returns the header that `data` begins with; None if it is not valid."""
    if len(data) < _HEADER.size:
        return None
    magic, _, page_bytes, _, *salts, first, second = _HEADER.unpack(data)
    dtype = ">u4" if magic & 1 else "<u4"
    checksums = _add_to_checksum((0, 0), np.frombuffer(data, dtype, _HEADER_SUMMED_BYTES // 4))
    valid_size = page_bytes and page_bytes % 8 == 0
    if magic & ~1 != _MAGIC or checksums != (first, second) or not valid_size:
        return None
    return _WalHeader(dtype, page_bytes, (salts[0], salts[1]), checksums)


def _bytes_after_commits(file: BinaryIO, size: int, header: _WalHeader) -> int:
    """Returns how many of the `size` bytes of `file` follow the last commit.

    The header was read from `file` before.
    """
    offset = committed = _HEADER.size
    checksums = header.checksums
    frame_bytes = _FRAME_HEADER.size + header.page_bytes
    while len(data := file.read(frame_bytes)) == frame_bytes:
        _, pages, *salts, first, second = _FRAME_HEADER.unpack_from(data)
        frame = np.frombuffer(data, header.dtype)
        summed = np.concatenate(
            [frame[: _FRAME_SUMMED_BYTES // 4], frame[_FRAME_HEADER.size // 4 :]]
        )
        checksums = _add_to_checksum(checksums, summed)
        if tuple(salts) != header.salts or checksums != (first, second):
            break
        offset += len(data)
        committed = offset if pages else committed
    return offset - committed + _partial_frame_bytes(data, size - offset, header)


def _partial_frame_bytes(data: bytes, remaining_bytes: int, header: _WalHeader) -> int:
    """Returns `remaining_bytes` if they belong to an interrupted commit, else 0.

    `data` is the beginning of the bytes after the last valid frame. Frames with other salts are
    older than the last reset of the file: their pages are in the database.
    """
    if remaining_bytes < _FRAME_HEADER.size:
        return remaining_bytes
    _, _, *salts, _, _ = _FRAME_HEADER.unpack_from(data)
    return remaining_bytes if tuple(salts) == header.salts else 0


def _add_to_checksum(sums: tuple[int, int], words: NDArray[np.uint32]) -> tuple[int, int]:
    """Returns SQLite's WAL checksum `sums`, continued over `words`.

    Each sum adds the two sums before it and a word, modulo 2 ** 32. So each word counts with a
    Fibonacci number as its weight.
    """
    weights = _fibonacci_numbers(len(words) + 1)
    checksums = []
    for last in (len(words) - 1, len(words)):
        weighted = words[:last] * weights[:last][::-1]
        carried = int(weights[last - 1]) * sums[0] + int(weights[last]) * sums[1]
        checksums.append((int(weighted.sum(dtype=np.uint32)) + carried) % _MODULUS)
    return checksums[0], checksums[1]


@lru_cache
def _fibonacci_numbers(count: int) -> NDArray[np.uint32]:
    """Returns the first Fibonacci numbers modulo 2 ** 32."""
    values = [1, 1]
    while len(values) < count:
        values.append((values[-1] + values[-2]) % _MODULUS)
    return np.array(values[:count], np.uint32)
