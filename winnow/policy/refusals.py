"""The clients that were refused a moment ago, which can be refused again without a new decision.

Knows keys, how long each was told to wait, and a clock that it is given. Most calls to a full
server come from callers that do not wait. A new decision for each would take the time that admitted
calls need.
"""

from winnow.deadline import Clock


class Refusals:
    """The latest refusals, in bounded memory."""

    def __init__(self, seconds: float, most: int, clock: Clock) -> None:
        """`seconds`: how long a refusal counts; `most`: most keys; new ones replace the oldest."""
        self._seconds, self._most, self._clock = seconds, most, clock
        self._until: dict[str, tuple[float, float]] = {}
        """End of each refusal, and the wait that its client was told; the oldest first."""

    def add(self, key: str, wait: float) -> None:
        """Notes that a client was refused now, and told to wait for `wait` seconds."""
        self._until.pop(key, None)
        if len(self._until) == self._most:
            del self._until[next(iter(self._until))]
        self._until[key] = self._clock() + self._seconds, wait

    def wait(self, key: str) -> float | None:
        """The seconds that a client was told to wait, if it was refused a moment ago; else None."""
        until, wait = self._until.get(key, (0.0, 0.0))
        return wait if until > self._clock() else None

    def forget(self) -> None:
        """Forgets all refusals, because a call has ended: there may be room now."""
        self._until.clear()
