"""The order in which refused clients without work in flight are admitted.

Knows keys, the amount that each requested, and a clock. The client that was refused first is
admitted first, as long as it repeats its request.
"""

from winnow.deadline import Clock


class RefusalQueue:
    """Refused clients, by key, in the order in which they are admitted; in bounded memory."""

    def __init__(self, seconds: float, max_keys: int, clock: Clock) -> None:
        """`seconds`: how long a key stays in the queue without a new request."""
        self._seconds, self._max_keys, self._clock = seconds, max_keys, clock
        self._amounts: dict[str, int] = {}
        """Requested amount of each key, in the order of the queue."""
        self._last_request: dict[str, float] = {}
        """Time of the last request of each key, the oldest first."""

    def wait(self, key: str, amount: int) -> None:
        """Appends a key if there is room, or updates the amount of a key in the queue."""
        self._forget_expired()
        if key not in self._amounts and len(self._amounts) >= self._max_keys:
            return
        self._amounts[key] = amount
        self._last_request.pop(key, None)
        self._last_request[key] = self._clock()

    def leave(self, key: str) -> None:
        """Removes a key from the queue, if the queue has it."""
        self._amounts.pop(key, None)
        self._last_request.pop(key, None)

    def ahead_of(self, key: str, max_amount: float) -> float:
        """The amount that the keys before `key` requested, at most `max_amount`.

        A key that is not queued comes last.
        """
        self._forget_expired()
        ahead = 0.0
        for waiting_key, amount in self._amounts.items():
            if waiting_key == key or ahead >= max_amount:
                break
            ahead += amount
        return min(ahead, max_amount)

    def __len__(self) -> int:
        """Number of waiting keys."""
        return len(self._amounts)

    def _forget_expired(self) -> None:
        horizon = self._clock() - self._seconds
        while (
            self._last_request
            and self._last_request[key := next(iter(self._last_request))] <= horizon
        ):
            self.leave(key)
