"""A least-recently-used cache within a budget of bytes. Pure.

Knows keys, values, and the sizes that the caller states.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

MIB = 1 << 20
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class CacheObserver(Protocol):
    """Receives the lookups and size changes of a cache; `CacheMetrics` implements it."""

    def count_lookup(self, result: str) -> None:
        """Counts a lookup: "hit" or "miss". A value that is being computed counts as a hit."""

    def resize(self, added_bytes: int, evicted: int) -> None:
        """Adds `added_bytes` (may be negative) to the size, and counts `evicted` entries."""


class _NoObserver:
    def count_lookup(self, result: str) -> None:
        pass

    def resize(self, added_bytes: int, evicted: int) -> None:
        pass


NO_OBSERVER: CacheObserver = _NoObserver()


class ByteBoundedLru(Generic[Key, Value]):
    """The most recently used values, at most `budget` bytes in all."""

    def __init__(self, budget: int, metrics: CacheObserver = NO_OBSERVER) -> None:
        """`metrics` receives size changes. The owner of the cache counts the lookups."""
        self._budget, self._on_resize = budget, metrics.resize
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.bytes = 0
        """Size of all values."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """Returns the value of a key and marks it as used; None for an unknown key."""
        if (entry := self._values.get(key)) is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Stores a value of `size` bytes, and evicts the least recently used values to make room.

        A value larger than the whole budget is not stored, and evicts nothing.
        """
        before, evicted = self.bytes, 0
        self._remove(key)
        if size <= self._budget:
            while self.bytes + size > self._budget:
                self._remove(next(iter(self._values)))
                evicted += 1
            self._values[key] = value, size
            self.bytes += size
        self._on_resize(self.bytes - before, evicted)

    def discard(self, is_obsolete: Callable[[Key], bool]) -> None:
        """Removes the values whose keys are obsolete. Takes time for each key."""
        before = self.bytes
        for key in [each for each in self._values if is_obsolete(each)]:
            self._remove(key)
        self._on_resize(self.bytes - before, 0)

    def clear(self) -> None:
        before = self.bytes
        self._values.clear()
        self.bytes = 0
        self._on_resize(-before, 0)

    def _remove(self, key: Key) -> None:
        if (entry := self._values.pop(key, None)) is not None:
            self.bytes -= entry[1]
