"""Quantised states of a passage's tokens: 8-bit integers, and a scale for each token."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.reading.states_kind import CHECKSUM_BYTES, READER_STATES, with_checksum

LEVELS = 127
"""The largest absolute level."""
_MIN_MAGNITUDE = np.float32(1e-8)


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
        return with_checksum(self.scales.astype("<f4").tobytes() + self.levels.tobytes())


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
    return READER_STATES.packed_size(tokens, width)


def unpack(data: bytes, width: int) -> PassageStates:
    """Parses the result of `PassageStates.packed`.

    Raises:
        ArtefactError: the data is damaged.

    """
    READER_STATES.check(data, width)
    body = data[:-CHECKSUM_BYTES]
    tokens = len(body) // READER_STATES.token_bytes(width)
    scales = np.frombuffer(body, "<f4", tokens).astype(np.float32)
    levels = np.frombuffer(body, np.int8, offset=scales.nbytes).reshape(tokens, width)
    return PassageStates(levels, scales)
