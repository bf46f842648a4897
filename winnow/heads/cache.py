"""Heads in memory, under a budget of bytes.

Knows which heads are in memory, how many bytes each takes, and which are in use; does not know how
heads are loaded. Lives on the event loop.
"""

import asyncio
from dataclasses import KW_ONLY, dataclass

from winnow.errors import OverloadedError
from winnow.heads.head import Head
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.store import Current
from winnow.policy.pinned_lru import PinnedLru


@dataclass(slots=True)
class HeadSlot:
    """A head that is in memory or being loaded."""

    id: str
    _: KW_ONLY
    head: Head | None = None
    """None until the head is loaded."""
    current: Current | None = None
    """The store's latest answer."""
    loading: asyncio.Task[None] | None = None
    """The first load."""
    checking: asyncio.Task[None] | None = None
    """A check for another version."""
    checked: float = 0.0
    """When the store was asked last, in seconds of the clock."""
    broken: int = 0
    """The version that failed to load last; 0 if there is none."""
    broken_until: float = 0.0
    """When that version is tried again, in seconds of the clock."""
    complaint: str = ""
    """The error of the last check; empty if the check succeeded."""

    @property
    def moved_to(self) -> str:
        """The encoder group that serves the head now, if it is another one."""
        return self.current.moved_to if self.current else ""

    @property
    def version(self) -> int | None:
        """The version in memory; None if there is none."""
        return self.head.manifest.version if self.head else None


@dataclass(frozen=True, slots=True)
class CachedHead:
    """A head in memory, for people."""

    id: str
    version: int
    bytes: int
    """Memory that the head takes, by estimate."""
    pinned: bool


class HeadCache:
    """Slots by the id of their head. A slot that is held stays."""

    def __init__(self, budget: int, metrics: EncoderGroupMetrics) -> None:
        """`budget` in bytes."""
        self._memory, self._metrics = PinnedLru(budget), metrics
        self._slots: dict[str, HeadSlot] = {}
        self._record()

    def __contains__(self, slot: HeadSlot) -> bool:
        """Returns whether this slot is still here."""
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

    def unloaded(self) -> int:
        """Returns how many slots take no memory yet."""
        return len(self._slots) - len(self._memory)

    def heads(self) -> list[CachedHead]:
        """Returns the heads in memory, by id."""
        memory = self._memory
        return [
            CachedHead(head, slot.head.manifest.version, memory.bytes(head), memory.is_pinned(head))
            for head, slot in sorted(self._slots.items())
            if slot.head is not None
        ]

    def is_held(self, head: str) -> bool:
        """Returns whether a head is in use."""
        return self._memory.is_held(head)

    def hold(self, slot: HeadSlot) -> None:
        """Marks a slot as in use. Each hold needs one release."""
        self._memory.hold(slot.id)

    def release(self, slot: HeadSlot) -> None:
        """Ends one hold."""
        self._memory.release(slot.id)
        self.tidy(slot)

    def tidy(self, slot: HeadSlot) -> None:
        """Removes a slot that has no head and that nobody waits for."""
        idle = slot.loading is None and not self._memory.is_held(slot.id)
        if slot.head is None and idle and slot in self:
            del self._slots[slot.id]

    def note(self, slot: HeadSlot, current: Current) -> None:
        """Records the store's answer for a head."""
        slot.current = current
        self._pin(slot)

    def taken(self, slot: HeadSlot) -> int:
        """Returns the bytes that are counted for a slot."""
        return self._memory.bytes(slot.id)

    def make_room(self, slot: HeadSlot, needed: int) -> None:
        """Counts `needed` bytes for a slot; the least recently used heads leave for it.

        Raises:
            OverloadedError: there is not enough room beside heads that are in use or pinned.

        """
        leaving = self._memory.take(slot.id, needed)
        if leaving is None:
            raise OverloadedError(
                f"head {slot.id} does not fit into memory: it needs {needed:,} bytes of "
                f"{self._memory.budget:,}, and other heads are in use or pinned; try again, or "
                "raise the budget"
            )
        for head in leaving:
            del self._slots[head]
        if leaving:
            self._metrics.evicted(len(leaving))
        self._record()

    def settle(self, slot: HeadSlot, taken: int) -> None:
        """Counts `taken` bytes, at most as many as before, for a slot; 0 for an empty one."""
        if taken:
            self._memory.take(slot.id, taken)
        else:
            self._memory.drop(slot.id)
        self._pin(slot)
        self._record()

    def _pin(self, slot: HeadSlot) -> None:
        if slot in self and self._memory.bytes(slot.id):
            self._memory.pin(slot.id, slot.current is not None and slot.current.pinned)

    def _record(self) -> None:
        self._metrics.memory(len(self._memory), self._memory.taken, self._memory.budget)
