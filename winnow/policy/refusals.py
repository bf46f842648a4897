"""Who was refused a moment ago, so that asking again at once need not be looked at.

Knows keys, how long each was told to wait, and a clock that it is given. Callers that do not wait
are most of what comes to a full server; to find out anew for each that nothing has changed would
take the time that those need who are let in.
"""

from winnow.deadline import Clock


class Refusals:
    """The latest refusals, in bounded memory."""

    def __init__(self, seconds: float, most: int, clock: Clock) -> None:
        """`seconds` that a refusal counts for, `most` keys: of more the oldest are forgotten."""
        self._seconds, self._most, self._clock = seconds, most, clock
        self._until: dict[str, tuple[float, float]] = {}
        """When each is over, and how long its client was told to wait; the oldest first."""

    def add(self, key: str, wait: float) -> None:
        """It was refused now, and told to wait for so many seconds."""
        self._until.pop(key, None)
        if len(self._until) == self._most:
            del self._until[next(iter(self._until))]
        self._until[key] = self._clock() + self._seconds, wait

    def wait(self, key: str) -> float | None:
        """The seconds that it was told to wait, if it was refused a moment ago; else None."""
        until, wait = self._until.get(key, (0.0, 0.0))
        return wait if until > self._clock() else None

    def forget(self) -> None:
        """Something has ended: everybody is looked at again."""
        self._until.clear()
