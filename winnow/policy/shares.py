"""Shares of whole numbers."""

import math

_ROUNDING = 1e-9


def at_least(share: float, count: int) -> int:
    """The smallest whole number that is at least `share` of `count`.

    0.55 of 20 is 11, although the product of these floats is slightly larger.
    """
    return math.ceil(share * count - _ROUNDING)
