"""The rows that filters let through, kept for whoever filters in the same way again.

Questions of one kind have one filter, and rows of a segment never change. Knows texts and masks,
not how a mask is made.
"""

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from winnow.filtering import MAX_CANONICAL, Filter, parse
from winnow.policy.kept import MIB, Kept

Rows = NDArray[np.bool_]
_BUDGET = 8 * MIB
"""Bytes, an eighth of a byte for each row."""


class Masks:
    """The masks of one segment used most recently. Safe to use from several threads."""

    def __init__(self, rows: int, budget: int = _BUDGET) -> None:
        self._rows = rows
        self._kept = Kept[str, NDArray[np.uint8]](budget)
        self._lock = threading.Lock()

    def where(self, expression: str, make: Callable[[Filter], Rows]) -> Rows:
        """The rows that a filter lets through, [rows]; the array is the caller's.

        `make` gives them in a new array where they are not known.

        Raises:
            InvalidRequestError: it is no filter.

        """
        with self._lock:
            kept = self._kept.get(expression)
        if kept is not None:
            return np.unpackbits(kept, count=self._rows).view(np.bool_)
        mask = make(parse(expression, MAX_CANONICAL))
        packed = np.packbits(mask)
        with self._lock:
            self._kept.put(expression, packed, packed.nbytes + len(expression))
        return mask
