"""Recent events: a decaying mean, a quantile over a window, and the keys that were seen.

Knows numbers, keys and a clock that it is given; does not know what they stand for.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Set as AbstractSet

from winnow.deadline import Clock
from winnow.policy.shares import at_least


class DecayedMean:
    """A mean in which the weight of a sample halves with every half-life that passes."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life` in seconds."""
        self._half_life, self._clock = half_life, clock
        self._total = self._weight = 0.0
        self._last = clock()
        self.samples = 0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Counts a sample; one of weight n counts like n samples."""
        kept = self.freshness()
        self._total = self._total * kept + value * weight
        self._weight = self._weight * kept + weight
        self._last = self._clock()
        self.samples += 1

    @property
    def value(self) -> float | None:
        """The mean; None before the first sample."""
        return self._total / self._weight if self.samples else None

    def freshness(self) -> float:
        """1 at the last sample, and half as much after every half-life without one."""
        return float(0.5 ** ((self._clock() - self._last) / self._half_life))


class SlidingQuantile:
    """A quantile of the last few samples: exact, by nearest rank."""

    def __init__(self, window: int, seconds: float, least: int, clock: Clock) -> None:
        """`window`: most samples; a sample costs a search and a shift in a list that long. Samples
        older than `seconds` are forgotten, except the last `least`.
        """
        self._window, self._seconds, self._least = window, seconds, least
        self._clock = clock
        self._arrived: deque[tuple[float, float]] = deque()
        """Time and value of each sample."""
        self._sorted: list[float] = []

    def add(self, value: float) -> None:
        """Counts a sample, and forgets the oldest once the window is full."""
        if len(self._arrived) == self._window:
            self._forget()
        self._arrived.append((self._clock(), value))
        insort(self._sorted, value)

    def count(self) -> int:
        """Number of samples that are not too old."""
        horizon = self._clock() - self._seconds
        while len(self._arrived) > self._least and self._arrived[0][0] < horizon:
            self._forget()
        return len(self._sorted)

    def of(self, share: float) -> float:
        """The smallest sample that at least `share` of the samples do not exceed.

        Needs a sample, and a share between 0 and 1.
        """
        return self._sorted[max(at_least(share, self.count()), 1) - 1]

    def _forget(self) -> None:
        _, value = self._arrived.popleft()
        del self._sorted[bisect_left(self._sorted, value)]


class RecentKeys:
    """The keys that were seen in the last few seconds, in bounded memory."""

    def __init__(self, seconds: float, most: int, clock: Clock) -> None:
        """`most`: most keys; further keys replace the oldest."""
        self._seconds, self._most, self._clock = seconds, most, clock
        self._seen: dict[str, float] = {}
        """Last time of each key, the oldest first."""

    def add(self, key: str) -> None:
        """Notes that a key was seen now."""
        self._seen.pop(key, None)
        if len(self._seen) == self._most:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = self._clock()

    def keys(self) -> AbstractSet[str]:
        """The keys that were seen lately: a view that the next call may change."""
        horizon = self._clock() - self._seconds
        while self._seen and self._seen[next(iter(self._seen))] <= horizon:
            del self._seen[next(iter(self._seen))]
        return self._seen.keys()
