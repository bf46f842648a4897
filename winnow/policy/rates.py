"""Rate limits, by token bucket.

Knows keys, their rates and a clock. The bucket of a key is stored as the time when it will be full
again (GCRA: ITU-T I.371, annex A).
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


class TokenBuckets:
    """A token bucket for each key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._full_at: dict[str, tuple[Rate, float]] = {}
        """The rate of each key, and the time when its bucket will be full again."""

    def take(self, key: str, rate: Rate, amount: int = 1, prepaid: int = 0) -> float:
        """Takes tokens from a key's bucket, if it has enough.

        An amount larger than the burst can be taken when the bucket is full.

        Args:
            key: name of the bucket.
            rate: rate of the key.
            amount: number of tokens to take.
            prepaid: number of tokens that were taken for the same call before its size was known.

        Returns:
            0 if the tokens were taken. Otherwise the seconds until they are available, and nothing
            is taken.

        """
        now, seconds_per_unit = self._clock(), 1 / rate.per_second
        # after a change of the rate, the missing tokens are added at the new rate
        before, full_at = self._full_at.get(key, (rate, now))
        missing = max(full_at - now, 0.0) * before.per_second
        if before != rate:  # a lower rate would take too long to add those of a larger bucket
            missing = min(missing, rate.burst)
        allowed_missing = max(rate.burst - amount - prepaid, 0.0)
        if (missing - prepaid - allowed_missing) * seconds_per_unit > _ROUNDING:
            return (missing - allowed_missing) * seconds_per_unit  # the next try prepays again
        self._full_at[key] = rate, now + (missing + amount) * seconds_per_unit
        return 0.0

    def __len__(self) -> int:
        """Number of remembered buckets."""
        return len(self._full_at)

    def missing(self, key: str) -> float:
        """Number of tokens that a bucket lacks."""
        rate, full_at = self._full_at.get(key, (Rate(1.0, 1.0), 0.0))
        return max(full_at - self._clock(), 0.0) * rate.per_second

    def forget_full(self) -> None:
        """Forgets full buckets, which equal new ones."""
        now = self._clock()
        self._full_at = {key: kept for key, kept in self._full_at.items() if kept[1] > now}

    def keep(self, keys: Collection[str]) -> None:
        """Forgets all keys except `keys`."""
        self._full_at = {key: kept for key, kept in self._full_at.items() if key in keys}
