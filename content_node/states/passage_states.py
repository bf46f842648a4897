"""Quantised states of a passage's tokens: 8-bit integers, and a scale for each token."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from winnow.errors import ArtefactError

LEVELS = 127
"""The largest absolute level."""
_MIN_MAGNITUDE = np.float32(1e-8)
_SCALE_BYTES, _CHECKSUM_BYTES = 4, 4


@dataclass(frozen=True, slots=True)
class PassageStates:
    """Quantised states of some tokens of a passage: levels times scales."""

    levels: NDArray[np.int8]
    """[tokens, width]."""
    scales: NDArray[np.float32]
    """[tokens]."""

    def part(self, first: int, end: int) -> "PassageStates":
        """Returns the states of tokens `first` to `end` - 1."""
        return PassageStates(self.levels[first:end], self.scales[first:end])

    def packed(self) -> bytes:
        """Returns the states in the format on disk, with a checksum at the end."""
        data = self.scales.astype("<f4").tobytes() + self.levels.tobytes()
        return data + crc32(data).to_bytes(_CHECKSUM_BYTES, "little")


def quantise(states: NDArray[np.float32]) -> PassageStates:
    """Quantises float32 [tokens, width]; the result is the same on every machine."""
    magnitudes = np.abs(states).max(axis=1, initial=0).astype(np.float32)
    scales = np.maximum(magnitudes, _MIN_MAGNITUDE) / np.float32(LEVELS)
    return PassageStates(np.rint(states / scales[:, None]).astype(np.int8), scales)


def concatenate(parts: list[PassageStates]) -> PassageStates:
    """Concatenates the states of several windows."""
    return PassageStates(
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.scales for part in parts]),
    )


def packed_size(tokens: int, width: int) -> int:
    """Returns the size of `PassageStates.packed` in bytes."""
    return tokens * (_SCALE_BYTES + width) + _CHECKSUM_BYTES


def unpack(data: bytes, width: int) -> PassageStates:
    """Parses the result of `PassageStates.packed`.

    Raises:
        ArtefactError: the data is damaged.

    """
    body = data[:-_CHECKSUM_BYTES]
    if crc32(body) != int.from_bytes(data[-_CHECKSUM_BYTES:], "little"):
        raise ArtefactError("the states of a passage are damaged: their checksum does not match")
    tokens, rest = divmod(len(body), _SCALE_BYTES + width)
    if rest:
        raise ArtefactError(f"the states of a passage are damaged: their width is not {width}")
    scales = np.frombuffer(body, "<f4", tokens).astype(np.float32)
    levels = np.frombuffer(body, np.int8, offset=tokens * _SCALE_BYTES).reshape(tokens, width)
    return PassageStates(levels, scales)
