"""Finds the rows of a segment that match a filter, on disk and in memory.

Many questions have the same filter, and the rows of a segment never change. So row masks are cached
by the text of their filter. This module evaluates filters; it does not know how values are stored.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.rows import RowMask
from winnow.errors import StoppedError
from winnow.filtering import (
    MAX_CANONICAL,
    And,
    AnyOf,
    Compare,
    Exists,
    Filter,
    Not,
    Operator,
    Or,
    Value,
    ValueKind,
    kind_of,
    parse,
)
from winnow.inference.stop_signal import StopSignal
from winnow.policy.byte_bounded_lru import ByteBoundedLru

ValueRows = NDArray[np.uint32]
"""Rows of several values, concatenated: a row may occur more than once."""


class SortedValues(Protocol):
    """The sorted values of one field and kind, each with its rows.

    The time of a lookup depends on its parameters and results, not on the size of the segment.
    """

    def all_rows(self) -> ValueRows:
        """Returns all rows with a value of this field and kind."""

    def rows_equal(self, values: Sequence[Value]) -> ValueRows:
        """Returns the rows that have one of `values`, which are of this kind."""

    def rows_below(self, value: Value, inclusive: bool) -> ValueRows:
        """Returns the rows that have a value less than `value`, or equal to it if `inclusive`."""

    def rows_above(self, value: Value, inclusive: bool) -> ValueRows:
        """Returns the rows that have a greater value, or an equal one if `inclusive`."""

    def values_above(self, value: Value, limit: int) -> list[tuple[Value, ValueRows]]:
        """Returns the next greater values, at most `limit`, ascending and with their rows."""


class FieldIndex(Protocol):
    """The metadata of a segment's rows, by field. Safe to use from several threads."""

    @property
    def field_names(self) -> tuple[str, ...]:
        """Sorted names of the fields; the first `MAX_FIELDS`."""

    def values_by_kind(
        self, field: str, stop: StopSignal | None
    ) -> Mapping[ValueKind, SortedValues]:
        """Returns the values of a field by kind; a kind without values may be missing.

        Raises:
            StoppedError: `stop` was set while values were gathered.

        """


class RowFilter:
    """Evaluates filters on one segment. Safe to use from several threads."""

    def __init__(self, fields: FieldIndex, rows: int, cache_bytes: int) -> None:
        """`cache_bytes` limits the cached masks; each takes one bit per row."""
        self.field_names = fields.field_names
        """Sorted names of the fields; the first `MAX_FIELDS`."""
        self._fields, self._rows = fields, rows
        self._masks = ByteBoundedLru[str, NDArray[np.uint8]](cache_bytes)
        self._lock = threading.Lock()

    def matching_rows(self, expression: str, stop: StopSignal | None = None) -> RowMask:
        """Returns the rows that match a filter, [rows]; the caller may change the array.

        Raises:
            InvalidRequestError: the expression is not a filter.
            StoppedError: `stop` was set before the filter was evaluated.
            ArtefactError: the shard's files cannot be read.

        """
        with self._lock:
            packed = self._masks.get(expression)
        if packed is not None:
            return np.unpackbits(packed, count=self._rows).view(np.bool_)
        mask = self._evaluate_condition(parse(expression, MAX_CANONICAL), stop)
        packed = np.packbits(mask)
        with self._lock:
            self._masks.put(expression, packed, packed.nbytes + len(expression))
        return mask

    def strings_above(
        self, field: str, value: str, limit: int, stop: StopSignal | None = None
    ) -> list[tuple[Value, ValueRows]]:
        """Returns the next strings of a field after `value`, at most `limit`, with their rows.

        Strings are ordered by their bytes in UTF-8. Rows may be those of removed passages.

        Raises:
            StoppedError: `stop` was set while values were gathered.
            ArtefactError: the shard's files cannot be read.

        """
        column = self._fields.values_by_kind(field, stop).get(ValueKind.STRING)
        return column.values_above(value, limit) if column is not None else []

    def rows_with(self, field: str, value: Value, stop: StopSignal | None = None) -> ValueRows:
        """Returns the rows whose field has a value. Raises the errors of `strings_above`."""
        column = self._fields.values_by_kind(field, stop).get(kind_of(value))
        return column.rows_equal([value]) if column is not None else np.empty(0, np.uint32)

    def _evaluate_condition(self, condition: Filter, stop: StopSignal | None) -> RowMask:
        match condition:
            case Not(part):
                return ~self._evaluate_condition(part, stop)
            case And(parts):
                return reduce(
                    np.logical_and, (self._evaluate_condition(part, stop) for part in parts)
                )
            case Or(parts):
                return reduce(
                    np.logical_or, (self._evaluate_condition(part, stop) for part in parts)
                )
            case Exists() | AnyOf() | Compare():
                check_stop(stop)
                mask = np.zeros(self._rows, np.bool_)
                kinds = self._fields.values_by_kind(condition.field, stop)
                for rows in _look_up_condition(condition, kinds):
                    mask[rows] = True
                return mask
        raise TypeError(f"unknown type of filter: {condition!r}")


def check_stop(stop: StopSignal | None) -> None:
    """Raises StoppedError if `stop` was set."""
    if stop is not None and stop.is_set:
        raise StoppedError("the search was stopped")


def _look_up_condition(
    condition: Exists | AnyOf | Compare, kinds: Mapping[ValueKind, SortedValues]
) -> Iterator[ValueRows]:
    match condition:
        case Exists():
            yield from (column.all_rows() for column in kinds.values())
        case AnyOf(_, values):
            for kind, column in kinds.items():
                same_kind = [value for value in values if kind_of(value) is kind]
                if distinct := list(dict.fromkeys(same_kind)):
                    yield column.rows_equal(distinct)
        case Compare(_, operator, value):
            for kind, column in kinds.items():
                if kind is kind_of(value):
                    yield from _select_matching(column, operator, value)
                elif operator is Operator.UNEQUAL:  # values of different kinds are never equal
                    yield column.all_rows()


def _select_matching(column: SortedValues, operator: Operator, value: Value) -> Iterator[ValueRows]:
    match operator:
        case Operator.EQUAL:
            yield column.rows_equal([value])
        case Operator.UNEQUAL:
            yield column.rows_below(value, inclusive=False)
            yield column.rows_above(value, inclusive=False)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            yield column.rows_below(value, inclusive=operator is Operator.LESS_OR_EQUAL)
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            yield column.rows_above(value, inclusive=operator is Operator.GREATER_OR_EQUAL)
