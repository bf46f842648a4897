"""Budget of bytes shared by keys: the least recently used leave when there is no room (LRU).

Knows keys, how many bytes each takes, and which are in use or pinned; these never leave. Does not
know what the keys stand for.
"""

from collections import Counter


class PinnedLru:
    """Bytes under a budget, by key. Their sum never exceeds it."""

    def __init__(self, budget: int) -> None:
        """`budget` in bytes."""
        self.budget = budget
        self.taken = 0
        """Bytes that all keys take together."""
        self._bytes: dict[str, int] = {}
        """Bytes by key, the least recently used first."""
        self._held: Counter[str] = Counter()
        self._pinned: set[str] = set()

    def __len__(self) -> int:
        """Returns how many keys take memory."""
        return len(self._bytes)

    def bytes(self, key: str) -> int:
        """Returns the bytes that a key takes."""
        return self._bytes.get(key, 0)

    def is_pinned(self, key: str) -> bool:
        """Returns whether a key is pinned."""
        return key in self._pinned

    def is_held(self, key: str) -> bool:
        """Returns whether a key is in use."""
        return key in self._held

    def hold(self, key: str) -> None:
        """Marks a key as in use, and as used last. Each hold needs one release."""
        self._held[key] += 1
        if key in self._bytes:
            self._bytes[key] = self._bytes.pop(key)

    def release(self, key: str) -> None:
        """Ends one hold."""
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]

    def pin(self, key: str, stays: bool) -> None:
        """Pins a key, or unpins it. A dropped key loses its pin."""
        if stays:
            self._pinned.add(key)
        else:
            self._pinned.discard(key)

    def take(self, key: str, amount: int) -> list[str] | None:
        """Gives a key `amount` bytes in place of the bytes that it has.

        Returns:
            The keys that left for it; None if there is not enough room beside the keys that are in
            use or pinned. In that case nothing changes.

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
        """Frees the bytes of a key and unpins it. Its holds still need their releases."""
        self.taken -= self._bytes.pop(key, 0)
        self._pinned.discard(key)
