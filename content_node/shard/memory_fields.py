"""The metadata of a few passages in memory, as filters see it."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.value_index import ValueColumn, ValueIndex
from winnow.domain.shard import MOST_FIELDS
from winnow.filtering import Fields, ValueKind, fields_of, kind_of
from winnow.inference.stop import Stop

_LOOK_EVERY = 0.01
"""Seconds between two looks at `stop` while another filter gathers the same field."""


class MemoryFields:
    """Indexes a field when the first filter names it, so writes never wait; a `FieldIndex`."""

    def __init__(self, rows: Sequence[Fields], names: Iterable[str]) -> None:
        """Takes the fields of each row, and `names` of the first `MOST_FIELDS` at least."""
        self.rows = rows
        self.names = tuple(sorted(set(names))[:MOST_FIELDS])
        self._gathered: dict[str, _GatheredField] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, metadata: Sequence[str]) -> "MemoryFields":
        """Parses a JSON object for each row, empty for none. Takes some microseconds each."""
        rows = [fields_of(json.loads(each)) if each else {} for each in metadata]
        return cls(rows, chain.from_iterable(rows))

    def joined(self, *others: "MemoryFields") -> "MemoryFields":
        """Returns these rows, then those of the others in their order; parses nothing again."""
        parts = (self, *others)
        rows = list(chain.from_iterable(part.rows for part in parts))
        return MemoryFields(rows, chain.from_iterable(part.names for part in parts))

    def values(self, field: str, stop: Stop | None) -> Mapping[ValueKind, ValueIndex]:
        with self._lock:
            gathered = self._gathered.setdefault(field, _GatheredField(field, self.rows))
        return gathered.values(stop)


class _GatheredField:
    """Gathers the values of a field once, row by row; resumes where it was stopped."""

    def __init__(self, field: str, rows: Sequence[Fields]) -> None:
        self._field, self._left = field, iter(enumerate(rows))
        self._columns = defaultdict[ValueKind, ValueColumn](ValueColumn)
        self._values: dict[ValueKind, ValueIndex] | None = None
        self._lock = threading.Lock()

    def values(self, stop: Stop | None) -> dict[ValueKind, ValueIndex]:
        while self._values is None:
            if self._lock.acquire(timeout=_LOOK_EVERY):
                try:
                    if self._values is None:
                        self._gather(stop)
                        self._values = {kind: c.sorted(kind) for kind, c in self._columns.items()}
                        self._columns.clear()
                finally:
                    self._lock.release()
            check_stop(stop)
        return self._values

    def _gather(self, stop: Stop | None) -> None:
        for row, fields in self._left:
            for value in fields.get(self._field, ()):
                self._columns[kind_of(value)].add(value, row)
            check_stop(stop)
