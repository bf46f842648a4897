"""Limits how often a key may be used.

Knows keys, their rates and a clock. Each key has a token bucket, which is stored as the time when
the bucket will be full again (GCRA: ITU-T I.371, annex A).
"""

from collections.abc import Collection
from dataclasses import dataclass

from winnow.deadline import Clock

_ROUNDING = 1e-9
"""Tolerance for rounding, in seconds."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate limit: the rate and the capacity of a token bucket."""

    per_second: float
    """Tokens added per second."""
    burst: float
    """Capacity of the bucket; 1 or more."""


class Rates:
    """The token buckets of keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at: dict[str, tuple[Rate, float]] = {}
        """The rate of each key, and when its bucket is full again."""

    def take(self, key: str, rate: Rate, amount: int = 1, prepaid: int = 0) -> float:
        """Takes an amount from a key's bucket, if it has that much.

        An amount larger than the burst may be taken when the bucket is full.

        Args:
            key: name of the bucket.
            rate: rate of the key.
            amount: amount to take.
            prepaid: amount of the same call that was taken before its size was known.

        Returns:
            0 if it was taken; else the seconds after which it can be, and nothing is taken.

        """
        now, seconds_per_unit = self._clock(), 1 / rate.per_second
        # after a change of the rate the missing tokens stay, and are added at the new rate
        before, full_at = self._full_at.get(key, (rate, now))
        missing = max(full_at - now, 0.0) * before.per_second
        allowed_missing = max(rate.burst - amount - prepaid, 0.0)
        if (missing - prepaid - allowed_missing) * seconds_per_unit > _ROUNDING:
            return (missing - allowed_missing) * seconds_per_unit  # the next try prepays again
        self._full_at[key] = rate, now + (missing + amount) * seconds_per_unit
        return 0.0

    def keep(self, keys: Collection[str]) -> None:
        """Forgets all keys except `keys`."""
        self._full_at = {key: kept for key, kept in self._full_at.items() if key in keys}
