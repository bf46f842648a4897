"""The rows that filters let through, kept for whoever filters in the same way again.

Questions of one kind have one filter, and rows of a segment never change. Knows texts and masks,
not how a comparison is looked up.
"""

import threading
from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from winnow.errors import StoppedError
from winnow.filtering import MAX_CANONICAL, And, Filter, Not, Or, parse
from winnow.inference.stop import Stop
from winnow.policy.byte_bounded_lru import MIB, ByteBoundedLru

Rows = NDArray[np.bool_]
Compared = Callable[[Filter], Rows]
"""The rows that one comparison of a filter lets through, in a new array."""
_BUDGET = 8 * MIB
"""Bytes, an eighth of a byte for each row."""


class Masks:
    """The masks of one segment used most recently. Safe to use from several threads."""

    def __init__(self, rows: int, budget: int = _BUDGET) -> None:
        self._rows = rows
        self._kept = ByteBoundedLru[str, NDArray[np.uint8]](budget)
        self._lock = threading.Lock()

    def where(self, expression: str, compared: Compared, stop: Stop | None = None) -> Rows:
        """The rows that a filter lets through, [rows]; the array is the caller's.

        `compared` looks up each comparison where the mask is not known.

        Raises:
            InvalidRequestError: it is no filter.
            StoppedError: `stop` was set before all comparisons were looked up.

        """
        with self._lock:
            kept = self._kept.get(expression)
        if kept is not None:
            return np.unpackbits(kept, count=self._rows).view(np.bool_)
        mask = _combined(parse(expression, MAX_CANONICAL), compared, stop)
        packed = np.packbits(mask)
        with self._lock:
            self._kept.put(expression, packed, packed.nbytes + len(expression))
        return mask


def _combined(wanted: Filter, compared: Compared, stop: Stop | None) -> Rows:
    def each(part: Filter) -> Rows:
        return _combined(part, compared, stop)

    match wanted:
        case Not(part):
            return ~each(part)
        case And(parts):
            return reduce(np.logical_and, map(each, parts))
        case Or(parts):
            return reduce(np.logical_or, map(each, parts))
    if stop is not None and stop.is_set:
        raise StoppedError("the search was ended")
    return compared(wanted)
