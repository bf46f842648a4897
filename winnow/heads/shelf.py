"""The slots of all heads in memory, under a budget.

Knows what each takes and who holds it; does not know how heads are loaded. Lives on the event loop.
"""

from winnow.errors import OverloadedError
from winnow.heads.metrics import RingMetrics
from winnow.heads.slot import Slot, WarmHead
from winnow.heads.store import Current
from winnow.policy.residency import Residency


class Shelf:
    """Slots by the id of their head. One that is held stays."""

    def __init__(self, budget: int, metrics: RingMetrics) -> None:
        """`budget` in bytes."""
        self._residency, self._metrics = Residency(budget), metrics
        self._slots: dict[str, Slot] = {}
        self._say()

    def find(self, head: str) -> Slot | None:
        """The slot of a head, loaded or not."""
        return self._slots.get(head)

    def add(self, head: str) -> Slot:
        """An empty slot."""
        slot = self._slots[head] = Slot(head)
        return slot

    def has(self, slot: Slot) -> bool:
        """Whether it is still here."""
        return self._slots.get(slot.id) is slot

    def slots(self) -> list[Slot]:
        """All of them."""
        return list(self._slots.values())

    def unloaded(self) -> int:
        """Slots whose head takes no memory yet."""
        return len(self._slots) - len(self._residency)

    def warm(self) -> list[WarmHead]:
        """The heads in memory, by id."""
        taken = self._residency
        return [
            WarmHead(head, slot.head.manifest.version, taken.bytes(head), taken.is_pinned(head))
            for head, slot in sorted(self._slots.items())
            if slot.head is not None
        ]

    def hold(self, slot: Slot) -> None:
        """It is in use. Whoever holds must release, once."""
        self._residency.hold(slot.id)

    def release(self, slot: Slot) -> None:
        """It is used once less."""
        self._residency.release(slot.id)
        self.tidy(slot)

    def tidy(self, slot: Slot) -> None:
        """Forgets a slot that holds nothing and that nobody waits for."""
        idle = slot.loading is None and not self._residency.is_held(slot.id)
        if slot.head is None and idle and self.has(slot):
            del self._slots[slot.id]

    def note(self, slot: Slot, current: Current) -> None:
        """Takes in what the store says of a head."""
        slot.current = current
        self._pin(slot)

    def taken(self, slot: Slot) -> int:
        """Bytes that are counted for it."""
        return self._residency.bytes(slot.id)

    def make_room(self, slot: Slot, needed: int) -> None:
        """Counts so many bytes for a slot; the least recently used heads leave for it.

        Raises:
            OverloadedError: there is not enough room beside those that are in use or pinned.

        """
        leaving = self._residency.take(slot.id, needed)
        if leaving is None:
            raise OverloadedError(
                f"head {slot.id} does not fit into memory: it needs {needed:,} bytes of "
                f"{self._residency.budget:,}, and other heads are in use or pinned; try again, or "
                "raise the budget"
            )
        for head in leaving:
            del self._slots[head]
        if leaving:
            self._metrics.evicted(len(leaving))
        self._say()

    def settle(self, slot: Slot, taken: int) -> None:
        """Counts `taken` bytes, no more than before, for what is in a slot now; 0 for nothing."""
        if taken:
            self._residency.take(slot.id, taken)
        else:
            self._residency.drop(slot.id)
        self._pin(slot)
        self._say()

    def _pin(self, slot: Slot) -> None:
        if self.has(slot) and self._residency.bytes(slot.id):
            self._residency.pin(slot.id, slot.current is not None and slot.current.pinned)

    def _say(self) -> None:
        taken = self._residency
        self._metrics.memory(len(taken), taken.taken, taken.budget)
