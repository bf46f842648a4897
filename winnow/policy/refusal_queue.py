"""The order of clients that were refused and have nothing in hand.

Knows keys, how much each wanted, and a clock that it is given. The client that was refused first
goes first, as long as it comes back to ask again.
"""

from winnow.deadline import Clock


class RefusalQueue:
    """A queue of keys, in bounded memory."""

    def __init__(self, seconds: float, most: int, clock: Clock) -> None:
        """`seconds`: how long a place is kept for a key that does not come back; `most`: places."""
        self._seconds, self._most, self._clock = seconds, most, clock
        self._amounts: dict[str, int] = {}
        """Amount that each key wants, in the order of the queue."""
        self._seen: dict[str, float] = {}
        """Last time that each key asked, the oldest first."""

    def wait(self, key: str, amount: int) -> None:
        """Gives a key a place at the end, unless it has one or there are too many."""
        self._forget()
        if key not in self._amounts and len(self._amounts) >= self._most:
            return
        self._amounts[key] = amount
        self._seen.pop(key, None)
        self._seen[key] = self._clock()

    def leave(self, key: str) -> None:
        """Takes a key out."""
        self._amounts.pop(key, None)
        self._seen.pop(key, None)

    def ahead_of(self, key: str, most: float) -> float:
        """Amount that the keys before `key` want together, at most `most`. A key without a place
        comes last.
        """
        self._forget()
        ahead = 0.0
        for one, amount in self._amounts.items():
            if one == key or ahead >= most:
                break
            ahead += amount
        return min(ahead, most)

    def __len__(self) -> int:
        """Number of places that are taken."""
        return len(self._amounts)

    def _forget(self) -> None:
        horizon = self._clock() - self._seconds
        while self._seen and self._seen[key := next(iter(self._seen))] <= horizon:
            self.leave(key)
