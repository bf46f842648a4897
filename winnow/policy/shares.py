"""Rounds shares of counts."""

import math

_ROUNDING = 1e-9


def smallest_count_for_share(share: float, count: int) -> int:
    """Returns the smallest whole number that is at least `share * count`.

    Returns 11 for 0.55 of 20, although the product of these floats is slightly more than 11.
    """
    return math.ceil(share * count - _ROUNDING)
