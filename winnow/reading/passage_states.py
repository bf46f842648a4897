"""Quantised states of a passage's tokens: levels of 4 bits, and a scale for each token.

A reader takes levels of 8 bits. So states are rounded to 8 bits, and these to 4 bits, which stand
for a part of the levels of 8 bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.reading.four_bits import GROUP, MAX_LEVEL, count_groups, decode, encode, round_levels
from winnow.reading.states_kind import CHECKSUM_BYTES, READER_STATES, StatesKind, with_checksum

_MIN_MAGNITUDE = np.float32(1e-8)


@dataclass(frozen=True, slots=True)
class PassageStates:
    """Quantised states of some tokens of a passage: levels times scales."""

    levels: NDArray[np.int8]
    """[tokens, width]. `round_levels` changes none of them."""
    scales: NDArray[np.float32]
    """[tokens]."""

    def part(self, first: int, end: int) -> "PassageStates":
        """Returns the states of tokens `first` to `end` - 1."""
        return PassageStates(self.levels[first:end], self.scales[first:end])

    def packed(self) -> bytes:
        """Returns the states in the format on disk, with a checksum at the end."""
        maxima, codes = encode(self.levels)
        parts = self.scales.astype("<f4"), maxima, codes
        return with_checksum(b"".join(part.tobytes() for part in parts))


def quantise(states: NDArray[np.float32]) -> PassageStates:
    """Quantises float32 [tokens, width]; the result is the same on every machine.

    A token with a value that is not finite gets the scale NaN. So no span of its window is found.
    """
    magnitudes = np.abs(states).max(axis=1, initial=0).astype(np.float32)
    finite = np.isfinite(magnitudes)
    if not finite.all():
        states, magnitudes = (np.where(finite, each.T, 0).T for each in (states, magnitudes))
    scales = np.maximum(magnitudes, _MIN_MAGNITUDE) / np.float32(MAX_LEVEL)
    levels = np.rint(states / scales[:, None]).astype(np.int8)
    return PassageStates(round_levels(levels), np.where(finite, scales, np.float32(np.nan)))


def concatenate(parts: list[PassageStates]) -> PassageStates:
    """Concatenates the states of several windows."""
    return PassageStates(
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.scales for part in parts]),
    )


def packed_size(tokens: int, width: int) -> int:
    """Returns the size of `PassageStates.packed` in bytes."""
    return READER_STATES.packed_size(tokens, width)


def unpack(data: bytes, width: int, kind: StatesKind = READER_STATES) -> PassageStates:
    """Parses the result of `PassageStates.packed`, or states in an older format of `kind`.

    States of 8 bits are rounded to 4 bits, so that they are the same as newly computed ones.

    Raises:
        ArtefactError: the data is damaged.

    """
    kind.check(data, width)
    tokens = kind.count_tokens(len(data), width)
    scales = np.frombuffer(data, "<f4", tokens).astype(np.float32)
    stored = np.frombuffer(data, np.uint8, len(data) - CHECKSUM_BYTES)[scales.nbytes :]
    if kind.bits == READER_STATES.bits:
        maxima, codes = np.split(stored, [tokens * count_groups(width)])
        shape = tokens, count_groups(width)
        levels = decode(maxima.reshape(shape), codes.reshape(*shape, GROUP // 2), width)
    else:
        levels = round_levels(stored.view(np.int8).reshape(tokens, width))
    return PassageStates(levels, scales)
