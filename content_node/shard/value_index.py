"""Looks up the rows in memory whose values of a field compare with a given value.

A comparison costs as much as there are rows, however many values each of them has.
"""

from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.column import Column
from winnow.content_node.shard.masks import Rows
from winnow.filtering import Operator, Value, ValueKind


class ValueIndex:
    """The sorted values of one kind of a field. Never changes."""

    def __init__(self, column: Column, kind: ValueKind, rows: int) -> None:
        """`rows` is the number of rows of the segment."""
        self._distinct: list[Any]
        self._distinct, starts, self._rows = column.sorted(kind)
        self._starts = np.append(starts, len(self._rows))
        places = np.repeat(np.arange(len(self._distinct)), np.diff(self._starts))
        order = np.argsort(self._rows, kind="stable")
        # the places of each row's values ascend, and stand together
        self._having, firsts = np.unique(self._rows[order], return_index=True)
        lasts = np.append(firsts[1:], len(order)) - 1
        self._lowest = places[order[firsts]].astype(np.int32)
        self._highest = places[order[lasts]].astype(np.int32)
        self._count = rows

    @property
    def having(self) -> Rows:
        """The rows that have a value of this kind, [rows]."""
        return self._mask(self._having)

    def compared(self, operator: Operator, value: Value) -> Rows:
        """The rows that have a value which compares so with `value`, of the same kind, [rows]."""
        begin, end = bisect_left(self._distinct, value), bisect_right(self._distinct, value)
        match operator:
            case Operator.EQUAL:
                return self._mask(self._rows[self._starts[begin] : self._starts[end]])
            case Operator.UNEQUAL:
                wanted = (self._lowest < begin) | (self._highest >= end)
            case Operator.LESS:
                wanted = self._lowest < begin
            case Operator.LESS_OR_EQUAL:
                wanted = self._lowest < end
            case Operator.GREATER:
                wanted = self._highest >= end
            case Operator.GREATER_OR_EQUAL:
                wanted = self._highest >= begin
        return self._mask(self._having[wanted])

    def _mask(self, rows: NDArray[np.uint32]) -> Rows:
        mask = np.zeros(self._count, np.bool_)
        mask[rows] = True
        return mask
