"""The values of one kind that a field has, sorted in memory. Pure.

The tables on disk are written from this index, so segments on disk and in memory agree on the order
and the length of values.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from winnow.content_node.shard.row_filter import ValueRows
from winnow.filtering import MAX_CANONICAL, Value, ValueKind

_LONGEST = MAX_CANONICAL + 1
"""Characters of a string that are kept. No filter is that long, so the rest decides nothing."""


class ValueColumn:
    """Values of one kind in the order of their rows, before they are sorted."""

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

    def sorted(self, kind: ValueKind) -> "ValueIndex":
        """Sorts the values, all of which are of `kind`."""
        rows = np.frombuffer(self._rows, np.uint32)
        values: list[Any]
        if kind is ValueKind.STRING:
            values = sorted(self._known)
            places = {value: place for place, value in enumerate(values)}
            keys = np.fromiter(map(places.__getitem__, self._values), np.int64, len(rows))
        else:
            found, keys = np.unique(np.array(self._values, np.float64), return_inverse=True)
            values = found.tolist()
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(len(values) + 1))
        having = np.unique(rows).astype("<u4")
        return ValueIndex(values, starts.tolist(), rows[order].astype("<u4"), having)


class ValueIndex:
    """Distinct values in order, each with its rows; implements `SortedValues`. Never changes."""

    def __init__(
        self, values: Sequence[Any], starts: Sequence[int], rows: ValueRows, having: ValueRows
    ) -> None:
        """The rows of value i are `rows[starts[i]:starts[i + 1]]`, ascending.

        `having` lists every row that has a value, once.
        """
        self.values, self.starts, self.rows, self._having = values, starts, rows, having

    def having(self) -> ValueRows:
        return self._having

    def equal(self, values: Sequence[Value]) -> ValueRows:
        ranges = [
            (bisect_left(self.values, each), bisect_right(self.values, each)) for each in values
        ]
        return np.concatenate([self._between(begin, end) for begin, end in ranges])

    def below(self, value: Value, inclusive: bool) -> ValueRows:
        return self._between(0, (bisect_right if inclusive else bisect_left)(self.values, value))

    def above(self, value: Value, inclusive: bool) -> ValueRows:
        begin = (bisect_left if inclusive else bisect_right)(self.values, value)
        return self._between(begin, len(self.values))

    def _between(self, begin: int, end: int) -> ValueRows:
        return self.rows[self.starts[begin] : self.starts[end]]
