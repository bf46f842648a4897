"""Which rows of a shard a filter lets through, by the tables of `attribute_tables`.

A filter reads as many entries as there are values, or blocks of values, and not one for each row.
What is let through is what `Filter.matches` says of each passage; a row that holds nothing has no
field.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from winnow.content_node.shard.masks import Masks, Rows
from winnow.domain.shard import MOST_FIELDS
from winnow.errors import ArtefactError
from winnow.filtering import (
    AnyOf,
    Compare,
    Exists,
    Filter,
    Operator,
    Value,
    ValueKind,
    kind_of,
)
from winnow.inference.stop import Stop

Select = Callable[[str, Sequence[Value]], list[Any]]
"""Gives what a query with these parameters finds."""
_Packed = list[tuple[bytes]]
"""Rows of some values: little-endian uint32."""
_Compared = tuple[str, ValueKind, Value]
"""A field, and what it is compared with."""
_FINE = "SELECT rows FROM attributes WHERE name = ? AND kind = ? AND value "
_COARSE = "SELECT rows FROM blocks WHERE name = ? AND kind = ? AND value "
_FIRST_BLOCK = "SELECT min(value) FROM blocks WHERE name = ? AND kind = ? AND value > ?"
_LAST_BLOCK = "SELECT max(value) FROM blocks WHERE name = ? AND kind = ? AND value <= ?"


class Attributes:
    """The metadata of a shard's rows, as filters see it. Safe to use from several threads."""

    def __init__(self, select: Select, rows: int) -> None:
        """`select` reads a database that has the tables; it raises ArtefactError if it cannot."""
        self._select, self._rows = select, rows
        self._masks = Masks(rows)
        found = select("SELECT DISTINCT name FROM fields ORDER BY name LIMIT ?", (MOST_FIELDS,))
        self.names = tuple(str(name) for (name,) in found)
        """Of fields, in order; the first `MOST_FIELDS` of them."""

    def where(self, expression: str, stop: Stop | None = None) -> Rows:
        """The rows that a filter lets through, [rows]; the array is the caller's.

        Raises:
            InvalidRequestError: it is no filter.
            StoppedError: `stop` was set.
            ArtefactError: the database cannot be read.

        """
        return self._masks.where(expression, self._compared, stop)

    def _compared(self, wanted: Filter) -> Rows:
        """The rows that one comparison lets through."""
        found = list(self._found(wanted))
        rows = np.frombuffer(b"".join(rows for some in found for (rows,) in some), "<u4")
        if len(rows) and int(rows.max()) >= self._rows:
            raise ArtefactError(
                f"a field is of row {rows.max()}, and there are {self._rows}: build the index again"
            )
        mask = np.zeros(self._rows, np.bool_)
        mask[rows] = True
        return mask

    def _found(self, wanted: Filter) -> Iterator[_Packed]:
        """What the tables have for one comparison."""
        match wanted:
            case Exists(field):
                yield self._select("SELECT rows FROM fields WHERE name = ?", (field,))
            case AnyOf(field, values):
                for kind in set(map(kind_of, values)):
                    own = [value for value in values if kind_of(value) is kind]
                    marks = ", ".join("?" * len(own))
                    yield self._select(f"{_FINE}IN ({marks})", (field, kind, *own))
            case Compare(field, operator, value):
                yield from self._ordered(operator, (field, kind_of(value), value))

    def _ordered(self, operator: Operator, of: _Compared) -> Iterator[_Packed]:
        if operator is Operator.EQUAL:
            yield self._select(_FINE + "= ?", of)
        elif operator is Operator.UNEQUAL:
            yield self._select("SELECT rows FROM fields WHERE name = ? AND kind != ?", of[:2])
            yield from self._below(Operator.LESS, of)
            yield from self._above(Operator.GREATER, of)
        elif operator in {Operator.LESS, Operator.LESS_OR_EQUAL}:
            yield from self._below(operator, of)
        else:
            yield from self._above(operator, of)

    def _below(self, operator: Operator, of: _Compared) -> Iterator[_Packed]:
        """Blocks that end before the value, and what lies between them and it."""
        ((edge,),) = self._select(_LAST_BLOCK, of)
        if edge is None:
            yield self._select(_FINE + f"{operator.value} ?", of)
        else:
            yield self._select(_COARSE + "< ?", (*of[:2], edge))
            yield self._select(_FINE + f"{operator.value} ? AND value >= ?", (*of, edge))

    def _above(self, operator: Operator, of: _Compared) -> Iterator[_Packed]:
        """Blocks that begin behind the value, and what lies between it and them."""
        ((edge,),) = self._select(_FIRST_BLOCK, of)
        if edge is None:
            yield self._select(_FINE + f"{operator.value} ?", of)
        else:
            yield self._select(_COARSE + ">= ?", (*of[:2], edge))
            yield self._select(_FINE + f"{operator.value} ? AND value < ?", (*of, edge))
