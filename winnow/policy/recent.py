"""Statistics of recent events: a decaying mean, a quantile over a window, and recent keys.

Knows numbers, keys and a clock; does not know what they stand for.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Set as AbstractSet

from winnow.deadline import Clock
from winnow.policy.shares import smallest_count_for_share


class DecayedMean:
    """A mean in which the weight of each sample halves with every half-life."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life` in seconds."""
        self._half_life, self._clock = half_life, clock
        self._total = self._weight = 0.0
        self._last = clock()
        self.samples = 0

    def add(self, value: float, weight: float = 1.0) -> None:
        """Adds a sample. A sample of weight n counts like n samples."""
        remaining = self.last_sample_weight()
        self._total = self._total * remaining + value * weight
        self._weight = self._weight * remaining + weight
        self._last = self._clock()
        self.samples += 1

    @property
    def value(self) -> float | None:
        """The mean; None before the first sample."""
        return self._total / self._weight if self.samples else None

    def last_sample_weight(self) -> float:
        """Returns the weight that the last sample has now: 1 at first, halved every half-life."""
        return float(0.5 ** ((self._clock() - self._last) / self._half_life))


class SlidingQuantile:
    """Exact quantiles of the last few samples, by nearest rank."""

    def __init__(self, window: int, seconds: float, min_samples: int, clock: Clock) -> None:
        """`window`: maximum number of samples. Each new sample shifts a sorted list of this length.

        Samples older than `seconds` are forgotten, except for the last `min_samples`.
        """
        self._window, self._seconds, self._min_samples = window, seconds, min_samples
        self._clock = clock
        self._samples: deque[tuple[float, float]] = deque()
        """Time and value of each sample."""
        self._sorted: list[float] = []

    def add(self, value: float) -> None:
        """Adds a sample, and forgets the oldest one if the window is full."""
        if len(self._samples) == self._window:
            self._forget_oldest()
        self._samples.append((self._clock(), value))
        insort(self._sorted, value)

    def count(self) -> int:
        """Forgets old samples; returns the number of remaining samples."""
        horizon = self._clock() - self._seconds
        while len(self._samples) > self._min_samples and self._samples[0][0] < horizon:
            self._forget_oldest()
        return len(self._sorted)

    def quantile(self, share: float) -> float:
        """The quantile `share` (0 to 1), by nearest rank. There must be at least one sample.

        This is the smallest sample `s` for which at least this share of the samples is <= `s`.
        """
        return self._sorted[max(smallest_count_for_share(share, self.count()), 1) - 1]

    def _forget_oldest(self) -> None:
        _, value = self._samples.popleft()
        del self._sorted[bisect_left(self._sorted, value)]


class RecentKeys:
    """The keys that were added in the last few seconds, in bounded memory."""

    def __init__(self, seconds: float, max_keys: int, clock: Clock) -> None:
        """`seconds`: how long a key is recent. More than `max_keys` keys replace the oldest."""
        self._seconds, self._max_keys, self._clock = seconds, max_keys, clock
        self._last_seen: dict[str, float] = {}
        """Time when each key was added last, the oldest first."""

    def add(self, key: str) -> None:
        """Adds a key, or renews it."""
        self._last_seen.pop(key, None)
        if len(self._last_seen) == self._max_keys:
            del self._last_seen[next(iter(self._last_seen))]
        self._last_seen[key] = self._clock()

    def keys(self) -> AbstractSet[str]:
        """The recent keys, as a live view: later calls may change it."""
        horizon = self._clock() - self._seconds
        while self._last_seen and self._last_seen[next(iter(self._last_seen))] <= horizon:
            del self._last_seen[next(iter(self._last_seen))]
        return self._last_seen.keys()

    def count(self) -> int:
        """Returns the number of recent keys. Any thread may call it, since it changes nothing."""
        horizon = self._clock() - self._seconds
        return sum(each > horizon for each in list(self._last_seen.values()))
