"""Which of a few passages in memory a filter lets through, by an index of their values."""

import json
import threading
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from itertools import chain

import numpy as np

from winnow.content_node.shard.column import Column
from winnow.content_node.shard.masks import Masks, Rows
from winnow.content_node.shard.value_index import ValueIndex
from winnow.domain.shard import MOST_FIELDS
from winnow.errors import StoppedError
from winnow.filtering import (
    AnyOf,
    Compare,
    Exists,
    Fields,
    Filter,
    Operator,
    ValueKind,
    fields_of,
    kind_of,
)
from winnow.inference.stop import Stop

_NONE: Fields = {}
_BUDGET = 1 << 20
"""Bytes of masks: there may be a dozen segments in memory."""
_Indexes = dict[ValueKind, ValueIndex]


class MemoryFields:
    """The metadata of some passages, as filters see it. Safe to use from several threads.

    The index of a field is made by the first filter that names it, so writes never wait for one.
    """

    def __init__(self, fields: Sequence[Fields], names: Sequence[str]) -> None:
        """The fields of each row; `names` are the first `MOST_FIELDS` of all fields, in order."""
        self._fields = fields
        self.names = tuple(names)
        """Of fields, in order."""
        self._masks = Masks(len(fields), _BUDGET)
        self._indexes: dict[str, _Indexes] = {}
        self._gathering: dict[str, _Gathering] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, metadata: Sequence[str]) -> "MemoryFields":
        """JSON objects, one for each row; empty for a row that has none. Some microseconds each."""
        fields = [fields_of(json.loads(each)) if each else _NONE for each in metadata]
        return cls(fields, _first(chain.from_iterable(fields)))

    def joined(self, *others: "MemoryFields") -> "MemoryFields":
        """These rows, then those of the others in their order; nothing is parsed again."""
        parts = (self, *others)
        fields = list(chain.from_iterable(part._fields for part in parts))
        return MemoryFields(fields, _first(chain.from_iterable(part.names for part in parts)))

    def where(self, expression: str, stop: Stop | None = None) -> Rows:
        """The rows that a filter lets through, [rows]; the array is the caller's.

        Raises:
            InvalidRequestError: it is no filter.
            StoppedError: `stop` was set.

        """
        return self._masks.where(expression, partial(self._compared, stop=stop), stop)

    def _compared(self, wanted: Filter, stop: Stop | None) -> Rows:
        """The rows that one comparison lets through."""
        match wanted:
            case Exists(field):
                return self._any([index.having for index in self._of(field, stop).values()])
            case AnyOf(field, values):
                comparisons = [Compare(field, Operator.EQUAL, value) for value in values]
                return self._any(
                    [mask for each in comparisons for mask in self._masks_of(each, stop)]
                )
            case Compare():
                return self._any(self._masks_of(wanted, stop))
        raise TypeError(f"{wanted} is no comparison")

    def _masks_of(self, wanted: Compare, stop: Stop | None) -> list[Rows]:
        kind, indexes = kind_of(wanted.value), self._of(wanted.field, stop)
        own = [indexes[kind].compared(wanted.operator, wanted.value)] if kind in indexes else []
        if wanted.operator is not Operator.UNEQUAL:
            return own
        return own + [index.having for other, index in indexes.items() if other is not kind]

    def _any(self, masks: Sequence[Rows]) -> Rows:
        return reduce(np.logical_or, masks, np.zeros(len(self._fields), np.bool_))

    def _of(self, field: str, stop: Stop | None) -> _Indexes:
        """The indexes of a field, by kind."""
        with self._lock:
            if field not in self._indexes:
                gathering = self._gathering.setdefault(field, _Gathering(field, self._fields))
                self._indexes[field] = gathering.indexes(stop)
                del self._gathering[field]
            return self._indexes[field]


class _Gathering:
    """Gathers the values of a field by kind, row by row; goes on where it was stopped."""

    def __init__(self, field: str, fields: Sequence[Fields]) -> None:
        self._field, self._fields = field, fields
        self._rows = iter(enumerate(fields))
        self._columns: dict[ValueKind, Column] = {}

    def indexes(self, stop: Stop | None) -> _Indexes:
        for row, fields in self._rows:
            for value in fields.get(self._field, ()):
                kind = kind_of(value)
                if kind not in self._columns:
                    self._columns[kind] = Column()
                self._columns[kind].add(value, row)
            if stop is not None and stop.is_set:
                raise StoppedError("the search was ended")
        rows = len(self._fields)
        return {kind: ValueIndex(own, kind, rows) for kind, own in self._columns.items()}


def _first(names: Iterable[str]) -> list[str]:
    return sorted(set(names))[:MOST_FIELDS]
