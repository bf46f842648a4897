"""Remembers clients that were just refused, so that they are refused again without a decision.

Most calls to a full server come from callers that ignore `retry_after`. A new decision for each
call would take time from admitted calls. Knows keys, the `retry_after` of each, and a clock.
"""

from winnow.deadline import Clock


class RecentRefusals:
    """The last refusal of each client, for a short time and in bounded memory."""

    def __init__(self, seconds: float, max_keys: int, clock: Clock) -> None:
        """`seconds`: how long a refusal counts. More than `max_keys` keys replace the oldest."""
        self._seconds, self._max_keys, self._clock = seconds, max_keys, clock
        self._until: dict[str, tuple[float, float]] = {}
        """End and `retry_after` (seconds) of each refusal, by client; the oldest first."""

    def add(self, key: str, retry_after: float) -> None:
        """Records that a client was refused now."""
        self._until.pop(key, None)
        if len(self._until) == self._max_keys:
            del self._until[next(iter(self._until))]
        self._until[key] = self._clock() + self._seconds, retry_after

    def retry_after(self, key: str) -> float | None:
        """The `retry_after` of a client, in seconds; None without a recent refusal."""
        until, retry_after = self._until.get(key, (0.0, 0.0))
        return retry_after if until > self._clock() else None

    def forget(self) -> None:
        """Forgets all refusals, because there may be room now."""
        self._until.clear()
