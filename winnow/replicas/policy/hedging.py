"""When a late request is hedged, which means also sent to another replica. A budget limits hedges.

This module knows the number of requests and the recent latencies of each kind. It does not know
replicas or calls. Hedging at the 95th percentile adds about 5 % of load (Dean and Barroso, "The
Tail at Scale", 2013). If everything is slow, every request is late. So each hedge also takes
tokens from a bucket that only requests fill, as in gRPC's retry throttling (gRFC A6).
"""

from collections import defaultdict
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.policy.recent import SlidingQuantile


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeSettings:
    """When requests are hedged, and how much load hedges may add."""

    quantile: float = 0.95
    """Quantile of recent latencies, 0 to 1, after which a request counts as late and is hedged."""
    window: int = 200
    """Number of latest answers over which the quantile is taken."""
    max_age: float = 10.0
    """Seconds for which an answer counts. Latencies under load must not define "late" after the
    load has ended.
    """
    min_samples: int = 20
    """Answers needed before hedging starts. The latest answers count even if they are too old."""
    min_delay: float = 0.001
    """Seconds before which no request is late."""
    overdue_factor: float = 2.0
    """Multiple of the late delay after which a request is overdue: its replica probably hangs."""
    budget: float = 0.05
    """Hedges per request, at most; 0 disables hedging."""
    burst: int = 20
    """Number of hedges that the bucket holds when it is full."""
    surcharge: float = 0.25
    """Share added to the price of a hedge if its request is late but not overdue.

    The surcharge refills the reserve. It also keeps a short run within the budget, although the
    bucket was full before.
    """
    reserve: int = 10
    """Number of hedges that only urgent requests may use, so that some remain when a replica
    hangs.
    """
    initial: int = 5
    """Number of hedges in the bucket at the start. A replica may hang before requests have filled
    the bucket.
    """


@dataclass(frozen=True, slots=True)
class LatencyEstimate:
    """The expected latency of a request, in seconds."""

    typical: float
    """The median latency."""
    late_after: float
    """After this time the request is late: it may be hedged."""
    overdue_after: float
    """After this time the request is overdue: its replica probably hangs."""

    def doubled(self) -> "LatencyEstimate":
        return LatencyEstimate(self.typical * 2, self.late_after * 2, self.overdue_after * 2)


class HedgeBudget:
    """A token bucket that limits hedges. Every request adds the price of a fraction of a hedge.

    The number of hedges never exceeds `initial` plus `budget` times the number of requests.
    """

    def __init__(self, settings: HedgeSettings) -> None:
        self._enabled = settings.budget > 0
        self._price = 1 / settings.budget if self._enabled else 0.0
        self._late_price = self._price * (1 + settings.surcharge)
        self._capacity = settings.burst * self._price
        self._reserve = settings.reserve * self._price
        self._balance = min(settings.initial, settings.burst) * self._price
        """The tokens in the bucket. A request adds one token; a hedge costs `_price` tokens."""

    def earn(self) -> None:
        """Adds the token of one request. Hedges add none."""
        balance = self._balance + 1
        self._balance = balance if balance < self._capacity else self._capacity

    def spend(self, urgent: bool = False) -> bool:
        """Returns whether a hedge may be sent now. If so, takes its tokens.

        `urgent`: the request is overdue, or late on a suspect replica. A late request whose hedge
        was refused may ask again when it is overdue.
        """
        price = self._price if urgent else self._late_price
        needed = price + (0.0 if urgent else self._reserve)
        allowed = self._enabled and self._balance >= needed
        if allowed:
            self._balance -= price
        return allowed


class HedgeDelay:
    """Measures after how long a request is late, for one kind of request to one pool."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._settings = settings
        self._recent = SlidingQuantile(
            settings.window, settings.max_age, settings.min_samples, clock
        )

    def observe(self, seconds: float) -> None:
        """Records the latency of an answer: seconds since its attempt (or hedge) was sent.

        Do not record cancelled attempts: every hedge would increase the delay.
        """
        self._recent.add(seconds)

    def estimate(self) -> LatencyEstimate | None:
        """The expected latency; None if there are too few answers."""
        settings = self._settings
        if self._recent.count() < settings.min_samples:
            return None
        late = max(self._recent.quantile(settings.quantile), settings.min_delay)
        return LatencyEstimate(self._recent.quantile(0.5), late, late * settings.overdue_factor)


class HedgeDelays:
    """The `HedgeDelay` of every kind of request, and of every power of two of work."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._delays: dict[tuple[str, int], HedgeDelay] = defaultdict(
            lambda: HedgeDelay(settings, clock)
        )

    def delay_of(self, kind: str, work: int) -> HedgeDelay:
        """Returns the `HedgeDelay` of this kind of request with about this much work."""
        return self._delays[kind, work.bit_length()]

    def estimate(self, kind: str, work: int) -> LatencyEstimate | None:
        """The expected latency; None if there are too few answers.

        If only requests with half the work have enough answers, their latency is doubled.
        """
        estimate = self.delay_of(kind, work).estimate()
        if estimate or work <= 1:
            return estimate
        half = self.delay_of(kind, work // 2).estimate()
        return half and half.doubled()
