"""The values of one kind that a field has, gathered and sorted. Pure.

Segments on disk and in memory sort values here, so their filters agree on order and length.
"""

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.filtering import MAX_CANONICAL, Value, ValueKind

_LONGEST = MAX_CANONICAL + 1
"""Characters of a string that are kept: no filter has so many, so that more decide nothing."""


class Column:
    """Values of one kind, each with a row that has it."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._rows = array("I")
        self._known: dict[Value, Value] = {}

    def add(self, value: Value, row: int) -> None:
        """Adds a value of a row; rows come in ascending order."""
        short = value[:_LONGEST] if isinstance(value, str) else value
        # the same string of many passages is one object
        self._values.append(self._known.setdefault(short, short))
        self._rows.append(row)

    def sorted(self, kind: ValueKind) -> tuple[list[Value], NDArray[np.int64], NDArray[np.uint32]]:
        """The distinct values in order, where the rows of each begin, and rows by their values."""
        rows = np.frombuffer(self._rows, np.uint32)
        if kind is ValueKind.STRING:
            distinct = sorted(self._known)
            places = {value: place for place, value in enumerate(distinct)}
            keys = np.fromiter(map(places.__getitem__, self._values), np.int64, len(rows))
        else:
            found, keys = np.unique(np.array(self._values, np.float64), return_inverse=True)
            distinct = found.tolist()
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(len(distinct)))
        return distinct, starts, rows[order].astype("<u4")
