"""Indexes the metadata fields of a few passages in memory."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.value_index import ValueColumn, ValueIndex
from winnow.domain.shard import MAX_FIELDS
from winnow.filtering import Fields, ValueKind, fields_of, kind_of
from winnow.inference.stop_signal import StopSignal

_STOP_CHECK_INTERVAL = 0.01
"""Seconds between checks of `stop` while another thread indexes the same field."""


class MemoryFields:
    """A `FieldIndex` that indexes a field at its first lookup, so writes never wait."""

    def __init__(self, rows: Sequence[Fields], names: Iterable[str]) -> None:
        """Takes the fields of each row. `names` must include the first `MAX_FIELDS` names."""
        self.rows = rows
        self.field_names = tuple(sorted(set(names))[:MAX_FIELDS])
        self._fields: dict[str, _LazyField] = {}
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, metadata: Sequence[str]) -> "MemoryFields":
        """Parses each row's JSON object, or "" without metadata. Takes some microseconds each."""
        rows = [fields_of(json.loads(each)) if each else {} for each in metadata]
        return cls(rows, chain.from_iterable(rows))

    def joined(self, *others: "MemoryFields") -> "MemoryFields":
        """Returns the rows of this object and of `others`, in this order; parses nothing again."""
        parts = (self, *others)
        rows = list(chain.from_iterable(part.rows for part in parts))
        return MemoryFields(rows, chain.from_iterable(part.field_names for part in parts))

    def values_by_kind(self, field: str, stop: StopSignal | None) -> Mapping[ValueKind, ValueIndex]:
        with self._lock:
            lazy = self._fields.setdefault(field, _LazyField(field, self.rows))
        return lazy.values_by_kind(stop)


class _LazyField:
    """Indexes the values of a field once, row by row; a stopped call is resumed by the next."""

    def __init__(self, field: str, rows: Sequence[Fields]) -> None:
        self._field, self._remaining_rows = field, iter(enumerate(rows))
        self._columns = defaultdict[ValueKind, ValueColumn](ValueColumn)
        self._values: dict[ValueKind, ValueIndex] | None = None
        self._lock = threading.Lock()

    def values_by_kind(self, stop: StopSignal | None) -> dict[ValueKind, ValueIndex]:
        while self._values is None:
            if self._lock.acquire(timeout=_STOP_CHECK_INTERVAL):
                try:
                    if self._values is None:
                        self._collect(stop)
                        self._values = {kind: c.to_index(kind) for kind, c in self._columns.items()}
                        self._columns.clear()
                finally:
                    self._lock.release()
            check_stop(stop)
        return self._values

    def _collect(self, stop: StopSignal | None) -> None:
        for row, fields in self._remaining_rows:
            for value in fields.get(self._field, ()):
                self._columns[kind_of(value)].add(value, row)
            check_stop(stop)
