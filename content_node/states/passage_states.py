"""Precomputed states of a passage's tokens as they are stored: integers, and a scale for each
token.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from winnow.errors import ArtefactError

LEVELS = 127
_LEAST = np.float32(1e-8)
_SCALE, _SUM = 4, 4
"""Bytes of a scale, and of the checksum."""


@dataclass(frozen=True, slots=True)
class PassageStates:
    """The lower layers' states of some tokens of a passage."""

    levels: NDArray[np.int8]
    """[tokens, width]."""
    scales: NDArray[np.float32]
    """[tokens]."""

    def part(self, first: int, end: int) -> "PassageStates":
        """Returns the states of tokens `first` to `end`."""
        return PassageStates(self.levels[first:end], self.scales[first:end])

    def packed(self) -> bytes:
        """Returns the states in the format on disk, followed by a checksum."""
        data = self.scales.astype("<f4").tobytes() + self.levels.tobytes()
        return data + crc32(data).to_bytes(_SUM, "little")


def rounded(states: NDArray[np.float32]) -> PassageStates:
    """Rounds float32 [tokens, width] as it is stored; the same on every machine."""
    largest = np.abs(states).max(axis=1, initial=0).astype(np.float32)
    scales = np.maximum(largest, _LEAST) / np.float32(LEVELS)
    return PassageStates(np.rint(states / scales[:, None]).astype(np.int8), scales)


def joined(parts: list[PassageStates]) -> PassageStates:
    """Joins the states of several windows, one behind the other."""
    return PassageStates(
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.scales for part in parts]),
    )


def packed_size(tokens: int, width: int) -> int:
    """Returns the size on disk of the states of `tokens` tokens, in bytes."""
    return tokens * (_SCALE + width) + _SUM


def unpacked(data: bytes, width: int) -> PassageStates:
    """Reads the result of `PassageStates.packed`.

    Raises:
        ArtefactError: the data is damaged.

    """
    body = data[:-_SUM]
    if crc32(body) != int.from_bytes(data[-_SUM:], "little"):
        raise ArtefactError("the states of a passage are damaged: their checksum does not match")
    tokens, rest = divmod(len(body), _SCALE + width)
    if rest:
        raise ArtefactError(f"the states of a passage are damaged: their width is not {width}")
    scales = np.frombuffer(body, "<f4", tokens).astype(np.float32)
    levels = np.frombuffer(body, np.int8, offset=tokens * _SCALE).reshape(tokens, width)
    return PassageStates(levels, scales)
