"""Limits how often a key may be used.

Knows keys, their rates, and a clock that it is given. Each key has a token bucket, stored as the
moment at which it will be full again (GCRA: ITU-T I.371, annex A).
"""

from collections.abc import Collection
from dataclasses import dataclass

from winnow.deadline import Clock

_ROUNDING = 1e-9
"""Rounding of seconds."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something may be done."""

    per_second: float
    """Average rate."""
    burst: float
    """Most at once, after a quiet time; 1 or more."""


class Rates:
    """The token buckets of keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lately: dict[str, tuple[Rate, float]] = {}
        """The rate of each key, and when its bucket is full again."""

    def take(self, key: str, rate: Rate, amount: int = 1, begun: int = 0) -> float:
        """Takes an amount from a key's bucket, if it has that much.

        An amount larger than the burst may be taken when the bucket is full.

        Args:
            key: name of the bucket.
            rate: rate of the key.
            amount: amount to take.
            begun: amount of the same call that was taken before its size was known.

        Returns:
            0 if it was taken; else the seconds after which it can be, and nothing is taken.

        """
        now, each = self._clock(), 1 / rate.per_second
        # with another rate than before, as much is missing, and is filled up at the new rate
        before, full_at = self._lately.get(key, (rate, now))
        missing = max(full_at - now, 0.0) * before.per_second
        room = max(rate.burst - amount - begun, 0.0)
        if (missing - begun - room) * each > _ROUNDING:
            return (missing - room) * each  # what was begun stays counted, and is begun once more
        self._lately[key] = rate, now + (missing + amount) * each
        return 0.0

    def keep(self, keys: Collection[str]) -> None:
        """Forgets all other keys."""
        self._lately = {key: each for key, each in self._lately.items() if key in keys}
