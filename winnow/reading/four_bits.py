"""Rounds levels of 8 bits to 4 bits: a code for each value, and a maximum for each group.

A group is 16 successive values of a token, and its maximum is that of its absolute levels. A code
stands for a share of the maximum, rounded to an integer. The shares are close together around 0,
where most values are (NormalFloat: Dettmers et al. 2023). So codes are decoded to levels of 8 bits,
and encoding these again gives the same codes. All results are the same on every machine.
"""

import numpy as np
from numpy.typing import NDArray

GROUP = 16
"""Values of a token that share a maximum."""
BYTES_A_GROUP = 1 + GROUP // 2
"""Bytes of a group: its maximum and its codes."""
MAX_LEVEL = 127
"""The largest absolute level of 8 bits."""
_SHARES = np.array([-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127])
"""The shares of the maximum, in units of 1/127. A code is an index."""

Levels = NDArray[np.int8]
Bytes = NDArray[np.uint8]


def count_groups(width: int) -> int:
    """Returns the number of groups of a token of `width` values; the last one may be shorter."""
    return -(-width // GROUP)


def encode(levels: Levels) -> tuple[Bytes, Bytes]:
    """Encodes levels [tokens, width].

    Returns the maxima [tokens, groups], and the codes [tokens, groups, 8], two in each byte.
    """
    maxima, numbers = _maxima_and_numbers(levels)
    codes = _CODES.take(numbers, mode="clip")
    return maxima, codes[:, :, ::2] | codes[:, :, 1::2] << np.uint8(4)


def decode(maxima: Bytes, codes: Bytes, width: int) -> Levels:
    """Decodes the results of `encode` to levels [tokens, width]."""
    pairs = _PAIRS.take(_numbers(maxima, codes), mode="clip")
    return _joined(pairs.view(np.int8), width)


def round_levels(levels: Levels) -> Levels:
    """Returns what `decode` returns for encoded levels [tokens, width]."""
    _, numbers = _maxima_and_numbers(levels)
    return _joined(ROUNDED.take(numbers, mode="clip"), levels.shape[1])


def _maxima_and_numbers(levels: Levels) -> tuple[Bytes, NDArray[np.intp]]:
    """Returns the maxima, and the place of each level in a table, [tokens, groups, 16]."""
    tokens, width = levels.shape
    groups = count_groups(width)
    if missing := groups * GROUP - width:
        levels = np.pad(levels, ((0, 0), (0, missing)))
    levels = np.ascontiguousarray(levels)
    # three times as fast as the maximum along an axis
    maxima = np.maximum.reduceat(np.abs(levels).ravel(), np.arange(0, levels.size, GROUP))
    own = maxima.view(np.uint8).reshape(tokens, groups)
    return own, _numbers(own, levels.view(np.uint8).reshape(tokens, groups, GROUP))


def _numbers(maxima: Bytes, values: Bytes) -> NDArray[np.intp]:
    """Returns the place of each byte in a table of 256 bytes for each maximum."""
    places: NDArray[np.intp] = (maxima.astype(np.intp) << 8)[:, :, None] | values
    return places


def _joined(levels: Levels, width: int) -> Levels:
    """Returns levels of groups as [tokens, width]."""
    tokens, groups, _ = levels.shape
    return np.ascontiguousarray(levels.reshape(tokens, groups * GROUP)[:, :width])


def _tables() -> tuple[Bytes, Levels, NDArray[np.uint16]]:
    """Returns the code and the rounded level of each level, and the two levels of each byte of
    codes, as two bytes. Each table has 256 values for each maximum.
    """
    decoded = np.rint(np.arange(MAX_LEVEL + 1)[:, None] * _SHARES / MAX_LEVEL).astype(np.int8)
    levels = np.arange(256, dtype=np.uint8).view(np.int8)
    distances = np.abs(decoded[:, None, :].astype(np.int16) - levels[:, None])
    codes = distances.argmin(axis=2).astype(np.uint8)
    rounded = np.take_along_axis(decoded, codes, axis=1)
    pairs = np.empty((len(decoded), 16, 16, 2), np.int8)
    pairs[..., 0], pairs[..., 1] = decoded[:, None, :], decoded[:, :, None]
    return codes.ravel(), rounded.ravel(), pairs.view(np.uint16).ravel()


_CODES, ROUNDED, _PAIRS = _tables()
"""`ROUNDED` has the rounded level at 256 times the maximum of the group, plus the level's byte."""
