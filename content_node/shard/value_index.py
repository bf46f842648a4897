"""The values of one field and kind, sorted in memory. Pure.

The tables on disk are written from this index, so segments on disk and in memory agree on the order
and the truncation of values.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from winnow.content_node.shard.row_filter import ValueRows
from winnow.filtering import MAX_CANONICAL, Value, ValueKind

_MAX_STRING = MAX_CANONICAL + 1
"""Indexed characters of a string. Filters are shorter, so the rest decides no comparison."""


class ValueColumn:
    """Values of one kind in the order of their rows, before they are sorted."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._rows = array("I")
        self._distinct: dict[Value, Value] = {}

    def add(self, value: Value, row: int) -> None:
        """Adds a value of a row; rows must come in ascending order."""
        truncated = value[:_MAX_STRING] if isinstance(value, str) else value
        # equal strings of many passages share one object
        self._values.append(self._distinct.setdefault(truncated, truncated))
        self._rows.append(row)

    def to_index(self, kind: ValueKind) -> "ValueIndex":
        """Returns the values, all of which are of `kind`, sorted and with their rows."""
        rows = np.frombuffer(self._rows, np.uint32)
        values: list[Any]
        if kind is ValueKind.STRING:
            values = sorted(self._distinct)
            ranks = {value: rank for rank, value in enumerate(values)}
            keys = np.fromiter(map(ranks.__getitem__, self._values), np.int64, len(rows))
        else:
            distinct, keys = np.unique(np.array(self._values, np.float64), return_inverse=True)
            values = distinct.tolist()
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange(len(values) + 1))
        all_rows = np.unique(rows).astype("<u4")
        return ValueIndex(values, starts.tolist(), rows[order].astype("<u4"), all_rows)


class ValueIndex:
    """Sorted distinct values, each with its rows; implements `SortedValues`. Immutable."""

    def __init__(
        self, values: Sequence[Any], starts: Sequence[int], rows: ValueRows, all_rows: ValueRows
    ) -> None:
        """The rows of value i are `rows[starts[i]:starts[i + 1]]`, ascending.

        `all_rows` contains every row that has a value, once.
        """
        self.values, self.starts, self.rows, self._all_rows = values, starts, rows, all_rows

    def all_rows(self) -> ValueRows:
        return self._all_rows

    def rows_equal(self, values: Sequence[Value]) -> ValueRows:
        return np.concatenate(
            [
                self._rows_between(bisect_left(self.values, each), bisect_right(self.values, each))
                for each in values
            ]
        )

    def rows_below(self, value: Value, inclusive: bool) -> ValueRows:
        end = (bisect_right if inclusive else bisect_left)(self.values, value)
        return self._rows_between(0, end)

    def rows_above(self, value: Value, inclusive: bool) -> ValueRows:
        begin = (bisect_left if inclusive else bisect_right)(self.values, value)
        return self._rows_between(begin, len(self.values))

    def values_above(self, value: Value, limit: int) -> list[tuple[Value, ValueRows]]:
        begin = bisect_right(self.values, value)
        places = range(begin, min(begin + limit, len(self.values)))
        return [(self.values[place], self._rows_between(place, place + 1)) for place in places]

    def _rows_between(self, begin: int, end: int) -> ValueRows:
        return self.rows[self.starts[begin] : self.starts[end]]
