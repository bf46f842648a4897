"""A cache of the values used most recently, within a budget of bytes. Pure.

Knows keys, values and their sizes; the owner of a value tells its size.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

MIB = 1 << 20
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class CacheWatch(Protocol):
    """Counts lookups and sizes of a cache; `winnow.telemetry.metrics` makes metrics of it."""

    def looked_up(self, result: str) -> None:
        """Counts a "hit" or a "miss"; a value that is being made for another caller is a hit."""

    def changed(self, more: int, evicted: int) -> None:
        """Notes that the cache has `more` bytes than before, and that `evicted` entries left."""


class _Unwatched:
    def looked_up(self, result: str) -> None:
        pass

    def changed(self, more: int, evicted: int) -> None:
        pass


UNWATCHED: CacheWatch = _Unwatched()


class ByteBoundedLru(Generic[Key, Value]):
    """The values used most recently; never more than `budget` bytes of them."""

    def __init__(self, budget: int, watch: CacheWatch = UNWATCHED) -> None:
        """`watch` is told of changes; the owner counts lookups."""
        self._budget, self._changed = budget, watch.changed
        self._values: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.bytes = 0
        """Size of all values, as their owner told."""

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Key) -> Value | None:
        """The value, which then is the one used most recently; None if there is none."""
        if (found := self._values.get(key)) is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keeps a value of `size` bytes; values unused for longest leave for it.

        A value that is larger than the whole budget is not kept, and none leaves for it.
        """
        before, evicted = self.bytes, 0
        self._take_out(key)
        if size <= self._budget:
            while self.bytes + size > self._budget:
                self._take_out(next(iter(self._values)))
                evicted += 1
            self._values[key] = value, size
            self.bytes += size
        self._changed(self.bytes - before, evicted)

    def clear(self) -> None:
        """Forgets everything."""
        before = self.bytes
        self._values.clear()
        self.bytes = 0
        self._changed(-before, 0)

    def _take_out(self, key: Key) -> None:
        if (found := self._values.pop(key, None)) is not None:
            self.bytes -= found[1]
