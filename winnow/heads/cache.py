"""The cache of heads in memory, under a budget in bytes.

Tracks which heads are in use and how much memory each takes; does not know how heads are loaded.
Not thread-safe: use the cache on the event loop.
"""

import asyncio
from dataclasses import KW_ONLY, dataclass

from winnow.domain.prediction import HeadInMemory
from winnow.errors import OverloadedError
from winnow.heads.head import Head
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.store import HeadRecord
from winnow.policy.pinned_lru import PinnedLru


@dataclass(slots=True)
class HeadSlot:
    """The cache entry of a head that is in memory or being loaded."""

    id: str
    _: KW_ONLY
    head: Head | None = None
    """None until the head is loaded."""
    record: HeadRecord | None = None
    """The last record read from the store."""
    load_task: asyncio.Task[None] | None = None
    """The first load, while it runs."""
    check_task: asyncio.Task[None] | None = None
    """A check of the store for a new version, while it runs."""
    checked_at: float = 0.0
    """When the record was last read, in seconds of the clock."""
    broken_version: int = 0
    """The version that last failed to load; 0 if none failed."""
    retry_broken_at: float = 0.0
    """When to try the broken version again, in seconds of the clock."""
    last_error: str = ""
    """The error of the last check; empty if the check succeeded."""

    @property
    def moved_to(self) -> str:
        """The encoder group that the head moved to; empty if it did not move."""
        return self.record.moved_to if self.record else ""

    @property
    def version(self) -> int | None:
        """The version in memory; None if there is none."""
        return self.head.manifest.version if self.head else None


class HeadCache:
    """The slots of heads, by head id. A held slot is never removed."""

    def __init__(self, budget_bytes: int, metrics: EncoderGroupMetrics) -> None:
        self._memory, self._metrics = PinnedLru(budget_bytes), metrics
        self._slots: dict[str, HeadSlot] = {}
        self._update_metrics()

    def __contains__(self, slot: HeadSlot) -> bool:
        """Returns whether this slot is still in the cache."""
        return self._slots.get(slot.id) is slot

    def find(self, head: str) -> HeadSlot | None:
        """Returns the slot of a head, loaded or not."""
        return self._slots.get(head)

    def add(self, head: str) -> HeadSlot:
        """Adds an empty slot."""
        slot = self._slots[head] = HeadSlot(head)
        return slot

    def slots(self) -> list[HeadSlot]:
        """Returns all slots."""
        return list(self._slots.values())

    def count_slots_without_head(self) -> int:
        """Returns the number of slots whose head is not in memory."""
        return len(self._slots) - len(self._memory)

    def heads(self) -> list[HeadInMemory]:
        """Returns the heads in memory, by id."""
        memory = self._memory
        return [
            HeadInMemory(
                head, slot.head.manifest.version, memory.bytes(head), memory.is_pinned(head)
            )
            for head, slot in sorted(self._slots.items())
            if slot.head is not None
        ]

    def is_held(self, head: str) -> bool:
        """Returns whether a head is in use."""
        return self._memory.is_held(head)

    def hold(self, slot: HeadSlot) -> None:
        """Marks a slot as in use, so that it stays. Call `release` once for each `hold`."""
        self._memory.hold(slot.id)

    def release(self, slot: HeadSlot) -> None:
        """Ends one `hold`."""
        self._memory.release(slot.id)
        self.remove_if_empty(slot)

    def remove_if_empty(self, slot: HeadSlot) -> None:
        """Removes a slot without a head that is neither loading nor held."""
        idle = slot.load_task is None and not self._memory.is_held(slot.id)
        if slot.head is None and idle and slot in self:
            del self._slots[slot.id]

    def set_record(self, slot: HeadSlot, record: HeadRecord) -> None:
        """Sets the record of a slot, and pins or unpins its head accordingly."""
        slot.record = record
        self._update_pin(slot)

    def reserved_bytes(self, slot: HeadSlot) -> int:
        """Returns the bytes that are reserved for a slot."""
        return self._memory.bytes(slot.id)

    def reserve(self, slot: HeadSlot, size: int) -> None:
        """Reserves `size` bytes for a slot, and evicts the least recently used heads as needed.

        Raises OverloadedError if heads that are in use or pinned leave too little room.
        """
        evicted = self._memory.take(slot.id, size)
        if evicted is None:
            raise OverloadedError(
                f"head {slot.id} does not fit into memory: it needs {size:,} bytes of "
                f"{self._memory.budget:,}, and other heads are in use or pinned; try again, or "
                "raise the budget"
            )
        for head in evicted:
            del self._slots[head]
        if evicted:
            self._metrics.count_evictions(len(evicted))
        self._update_metrics()

    def shrink(self, slot: HeadSlot, size: int) -> None:
        """Reduces a slot's reservation to `size` bytes; 0 drops the reservation."""
        if size:
            self._memory.take(slot.id, size)
        else:
            self._memory.drop(slot.id)
        self._update_pin(slot)
        self._update_metrics()

    def _update_pin(self, slot: HeadSlot) -> None:
        if slot in self and self._memory.bytes(slot.id):
            self._memory.pin(slot.id, slot.record is not None and slot.record.pinned)

    def _update_metrics(self) -> None:
        self._metrics.set_memory(len(self._memory), self._memory.used_bytes, self._memory.budget)
