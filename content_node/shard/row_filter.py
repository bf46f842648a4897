"""Which rows of a segment a filter accepts, on disk and in memory alike.

Questions of one kind have one filter, and the rows of a segment never change. So masks of rows are
cached by the text of their filter. Knows what a filter means, not how values are stored.
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
from winnow.inference.stop import Stop
from winnow.policy.byte_bounded_lru import ByteBoundedLru

ValueRows = NDArray[np.uint32]
"""The rows of some values, one value after the other: a row may be there several times."""


class SortedValues(Protocol):
    """The values of one kind that a field has, in order, each with its rows.

    A lookup takes time for the values that it is given and the rows that it finds, however many
    rows and values the segment has.
    """

    def having(self) -> ValueRows:
        """Returns the rows that have any of these values."""

    def equal(self, values: Sequence[Value]) -> ValueRows:
        """Returns the rows that have one of `values`, which are of this kind."""

    def below(self, value: Value, inclusive: bool) -> ValueRows:
        """Returns the rows that have a value less than `value`, or equal to it if `inclusive`."""

    def above(self, value: Value, inclusive: bool) -> ValueRows:
        """Returns the rows that have a greater value, or an equal one if `inclusive`."""


class FieldIndex(Protocol):
    """The metadata of a segment's rows, by field. Safe to use from several threads."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the first `MOST_FIELDS` fields, in order."""

    def values(self, field: str, stop: Stop | None) -> Mapping[ValueKind, SortedValues]:
        """Returns the values of a field by kind; a kind without values may be missing.

        Raises:
            StoppedError: `stop` was set while values were gathered.

        """


class RowFilter:
    """Looks up filters in one segment. Safe to use from several threads."""

    def __init__(self, fields: FieldIndex, rows: int, budget: int) -> None:
        """`budget` limits the cached masks, in bytes; each takes a bit for each row."""
        self._fields, self._rows = fields, rows
        self._masks = ByteBoundedLru[str, NDArray[np.uint8]](budget)
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the first `MOST_FIELDS` fields, in order."""
        return self._fields.names

    def where(self, expression: str, stop: Stop | None = None) -> RowMask:
        """Returns the rows that a filter accepts, [rows]; the caller may change the array.

        Raises:
            InvalidRequestError: the expression is not a filter.
            StoppedError: `stop` was set before all comparisons were looked up.
            ArtefactError: the shard's files cannot be read.

        """
        with self._lock:
            packed = self._masks.get(expression)
        if packed is not None:
            return np.unpackbits(packed, count=self._rows).view(np.bool_)
        mask = self._accepted(parse(expression, MAX_CANONICAL), stop)
        packed = np.packbits(mask)
        with self._lock:
            self._masks.put(expression, packed, packed.nbytes + len(expression))
        return mask

    def _accepted(self, wanted: Filter, stop: Stop | None) -> RowMask:
        match wanted:
            case Not(part):
                return ~self._accepted(part, stop)
            case And(parts):
                return reduce(np.logical_and, (self._accepted(part, stop) for part in parts))
            case Or(parts):
                return reduce(np.logical_or, (self._accepted(part, stop) for part in parts))
            case Exists() | AnyOf() | Compare():
                check_stop(stop)
                mask = np.zeros(self._rows, np.bool_)
                for rows in _lookups(wanted, self._fields.values(wanted.field, stop)):
                    mask[rows] = True
                return mask
        raise TypeError(f"{wanted!r} is of an unknown type of filter")


def check_stop(stop: Stop | None) -> None:
    """Raises StoppedError if `stop` was set."""
    if stop is not None and stop.is_set:
        raise StoppedError("the search was ended")


def _lookups(
    wanted: Exists | AnyOf | Compare, kinds: Mapping[ValueKind, SortedValues]
) -> Iterator[ValueRows]:
    """Looks up one comparison in the values of its field."""
    match wanted:
        case Exists():
            yield from (own.having() for own in kinds.values())
        case AnyOf(_, values):
            for kind, own in kinds.items():
                if same := [value for value in values if kind_of(value) is kind]:
                    yield own.equal(same)
        case Compare(_, operator, value):
            for kind, own in kinds.items():
                if kind is kind_of(value):
                    yield from _compared(own, operator, value)
                elif operator is Operator.UNEQUAL:  # values of different kinds are never equal
                    yield own.having()


def _compared(own: SortedValues, operator: Operator, value: Value) -> Iterator[ValueRows]:
    match operator:
        case Operator.EQUAL:
            yield own.equal([value])
        case Operator.UNEQUAL:
            yield own.below(value, inclusive=False)
            yield own.above(value, inclusive=False)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            yield own.below(value, inclusive=operator is Operator.LESS_OR_EQUAL)
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            yield own.above(value, inclusive=operator is Operator.GREATER_OR_EQUAL)
