"""A byte budget that keys share: to make room, the least recently used keys are evicted.

Keys that are in use or pinned are never evicted. Knows how many bytes each key takes; does not know
what the keys stand for.
"""

from collections import Counter


class PinnedLru:
    """Counts the bytes of each key, and evicts keys so that the sum never exceeds the budget."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        """Maximum bytes of all keys."""
        self.used_bytes = 0
        """Bytes of all keys."""
        self._bytes: dict[str, int] = {}
        """Bytes by key, the least recently used first."""
        self._hold_counts: Counter[str] = Counter()
        self._pinned: set[str] = set()

    def __len__(self) -> int:
        """Returns the number of keys that take memory."""
        return len(self._bytes)

    def bytes(self, key: str) -> int:
        """Returns the bytes that a key takes."""
        return self._bytes.get(key, 0)

    def is_pinned(self, key: str) -> bool:
        """Returns whether a key is pinned."""
        return key in self._pinned

    def is_held(self, key: str) -> bool:
        """Returns whether a key is in use."""
        return key in self._hold_counts

    def hold(self, key: str) -> None:
        """Marks a key as in use and as last used. Call `release` once for each `hold`."""
        self._hold_counts[key] += 1
        if key in self._bytes:
            self._bytes[key] = self._bytes.pop(key)

    def release(self, key: str) -> None:
        """Ends one `hold` of a key.

        A key without holds may be evicted, unless it is pinned.
        """
        self._hold_counts[key] -= 1
        if not self._hold_counts[key]:
            del self._hold_counts[key]

    def pin(self, key: str, pinned: bool) -> None:
        """Pins or unpins a key."""
        if pinned:
            self._pinned.add(key)
        else:
            self._pinned.discard(key)

    def take(self, key: str, amount: int) -> list[str] | None:
        """Sets the bytes of a key to `amount`.

        Returns:
            The keys that were evicted to make room. None if keys that are in use or pinned leave
            too little room; then nothing changes.

        """
        evicted: list[str] = []
        missing_bytes = self.used_bytes - self.bytes(key) + amount - self.budget
        for candidate, size in self._bytes.items():
            if missing_bytes <= 0:
                break
            if (
                candidate != key
                and candidate not in self._hold_counts
                and candidate not in self._pinned
            ):
                evicted.append(candidate)
                missing_bytes -= size
        if missing_bytes > 0:
            return None
        for candidate in evicted:
            self.drop(candidate)
        self.used_bytes += amount - self._bytes.pop(key, 0)
        self._bytes[key] = amount
        return evicted

    def drop(self, key: str) -> None:
        """Frees the bytes of a key and unpins it. Callers of `hold` must still call `release`."""
        self.used_bytes -= self._bytes.pop(key, 0)
        self._pinned.discard(key)
