"""When a late request is hedged: also sent to another replica. A budget limits hedges.

Knows recent latencies of each kind of request and the number sent; does not know replicas or calls.
Hedging at the 95th percentile adds about 5 % of load (Dean and Barroso, "The Tail at Scale", 2013).
If everything is slow, every request is late. So hedges are also paid for from a bucket that only
requests fill, as in gRPC's retry throttling (gRFC A6).
"""

from collections import defaultdict
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.policy.recent import SlidingQuantile


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeSettings:
    """When to hedge, and the most load that it may add."""

    quantile: float = 0.95
    """Quantile of recent latencies, 0 to 1, after which a request counts as late and is hedged."""
    window: int = 200
    """Number of the latest answers that the quantile is taken over."""
    max_age: float = 10.0
    """Seconds for which an answer counts: what is usual under load is late without it."""
    min_samples: int = 20
    """Answers needed before hedging starts. The latest ones count even if they are too old."""
    min_delay: float = 0.001
    """Seconds before which no request is late."""
    overdue_factor: float = 2.0
    """Factor of the delay after which a request is overdue: its replica probably hangs."""
    budget: float = 0.05
    """Hedges per request, at most; 0 disables hedging."""
    burst: int = 20
    """Hedges that the bucket holds."""
    surcharge: float = 0.25
    """Extra price of a hedge, as a share, if its request is late but not overdue.

    So the reserve grows, and short runs stay within the budget despite hedges saved up before.
    """
    reserve: int = 10
    """Hedges that only urgent requests may use, so that some are left when a replica hangs."""
    initial: int = 5
    """Hedges in the bucket at the start: a replica may hang before requests have paid for any."""


@dataclass(frozen=True, slots=True)
class LatencyEstimate:
    """The expected latency of a request, in seconds."""

    typical: float
    """The median."""
    late_after: float
    overdue_after: float

    def doubled(self) -> "LatencyEstimate":
        return LatencyEstimate(self.typical * 2, self.late_after * 2, self.overdue_after * 2)


class HedgeBudget:
    """A bucket that every request fills by a fraction of a hedge.

    The number of hedges never exceeds `initial` plus `budget` times the number of requests.
    """

    def __init__(self, settings: HedgeSettings) -> None:
        self._enabled = settings.budget > 0
        self._price = 1 / settings.budget if self._enabled else 0.0
        self._late_price = self._price * (1 + settings.surcharge)
        self._capacity = settings.burst * self._price
        self._reserve = settings.reserve * self._price
        self._balance = min(settings.initial, settings.burst) * self._price
        """The content of the bucket, in requests. A hedge costs `_price` requests."""

    def earn(self) -> None:
        """Counts a request; hedges do not count."""
        balance = self._balance + 1
        self._balance = balance if balance < self._capacity else self._capacity

    def spend(self, urgent: bool = False) -> bool:
        """Whether a hedge may be sent now; if so, pays for it.

        `urgent`: the request is overdue, or late on a suspect replica. A late request that was
        refused may try once more when it is overdue.
        """
        price = self._price if urgent else self._late_price
        needed = price + (0.0 if urgent else self._reserve)
        allowed = self._enabled and self._balance >= needed
        if allowed:
            self._balance -= price
        return allowed


class HedgeDelay:
    """How long one kind of request to one pool may take before it is late."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._settings = settings
        self._recent = SlidingQuantile(
            settings.window, settings.max_age, settings.min_samples, clock
        )

    def observe(self, seconds: float) -> None:
        """Records the latency of an answer: seconds since its attempt was sent, hedge or not.

        Cancelled attempts do not count: every hedge would increase the delay.
        """
        self._recent.add(seconds)

    def estimate(self) -> LatencyEstimate | None:
        """The expected latency; None while there are too few answers."""
        settings = self._settings
        if self._recent.count() < settings.min_samples:
            return None
        late = max(self._recent.of(settings.quantile), settings.min_delay)
        return LatencyEstimate(self._recent.of(0.5), late, late * settings.overdue_factor)


class HedgeDelays:
    """The delays of every kind of request. A request with twice the work counts as another kind."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._delays: dict[tuple[str, int], HedgeDelay] = defaultdict(
            lambda: HedgeDelay(settings, clock)
        )

    def of(self, kind: str, work: int) -> HedgeDelay:
        """The delay of this kind of request, with about this much work."""
        return self._delays[kind, work.bit_length()]

    def estimate(self, kind: str, work: int) -> LatencyEstimate | None:
        """The expected latency; with too few answers, twice that of half the work."""
        estimate = self.of(kind, work).estimate()
        if estimate or work <= 1:
            return estimate
        half = self.of(kind, work // 2).estimate()
        return half and half.doubled()
