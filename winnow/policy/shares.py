"""Shares of things that come in whole numbers."""

import math

_ROUNDING = 1e-9


def at_least(share: float, count: int) -> int:
    """The smallest whole number that is at least `share` of `count`.

    0.55 of 20 is 11, though as floats their product is a little more.
    """
    return math.ceil(share * count - _ROUNDING)
