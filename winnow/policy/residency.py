"""What stays in memory, and what leaves when there is no room: the least recently used.

Knows keys, how many bytes each takes, who is in use and who is pinned; does not know what they are.
The least recently used leave first (LRU); what is in use cannot leave, and what is pinned stays.
"""

from collections import Counter


class Residency:
    """Bytes under a budget, by key. They never exceed it."""

    def __init__(self, budget: int) -> None:
        """`budget` in bytes."""
        self.budget = budget
        self.taken = 0
        """Bytes."""
        self._bytes: dict[str, int] = {}
        """The least recently used first."""
        self._held: Counter[str] = Counter()
        self._pinned: set[str] = set()

    def __len__(self) -> int:
        """Keys that take anything."""
        return len(self._bytes)

    def bytes(self, key: str) -> int:
        """What a key takes."""
        return self._bytes.get(key, 0)

    def is_pinned(self, key: str) -> bool:
        """Whether it stays."""
        return key in self._pinned

    def is_held(self, key: str) -> bool:
        """Whether it is in use."""
        return key in self._held

    def hold(self, key: str) -> None:
        """It is used once more, and so was used last. Whoever holds must release, once."""
        self._held[key] += 1
        if key in self._bytes:
            self._bytes[key] = self._bytes.pop(key)

    def release(self, key: str) -> None:
        """It is used once less."""
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def pin(self, key: str, stays: bool) -> None:
        """It stays, or not any more. One that leaves by `drop` has to be pinned anew."""
        if stays:
            self._pinned.add(key)
        else:
            self._pinned.discard(key)

    def take(self, key: str, amount: int) -> list[str] | None:
        """Gives a key so many bytes in place of those that it has.

        Returns:
            The keys that leave, of which nothing is known any more; None if there is not enough
            room beside what is in use and what is pinned, when nothing changes.

        """
        leaving: list[str] = []
        missing = self.taken - self.bytes(key) + amount - self.budget
        for other, size in self._bytes.items():
            if missing <= 0:
                break
            if other != key and other not in self._held and other not in self._pinned:
                leaving.append(other)
                missing -= size
        if missing > 0:
            return None
        for other in leaving:
            self.drop(other)
        self.taken += amount - self._bytes.pop(key, 0)
        self._bytes[key] = amount
        return leaving

    def drop(self, key: str) -> None:
        """It takes nothing any more, and is not pinned. Whoever holds it still has to release."""
        self.taken -= self._bytes.pop(key, 0)
        self._pinned.discard(key)
