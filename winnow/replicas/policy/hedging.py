"""When a late request is also sent to another replica, and how often that may be done.

Knows recent latencies of each kind of request and the number sent; does not know replicas or calls.
Hedging at the 95th percentile is Dean and Barroso's, "The Tail at Scale" (2013), which adds about
5 % of load. Where everything is slow every request would be late, so hedges are also paid for from
a bucket that only requests fill, as gRPC fills its retry throttle (gRFC A6).
"""

from collections import defaultdict
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.policy.recent import SlidingQuantile


@dataclass(frozen=True, slots=True, kw_only=True)
class HedgeSettings:
    """When to hedge, and the most load that it may add."""

    quantile: float = 0.95
    """Share of recent answers, 0 to 1, that took less than a request must take to be hedged."""
    window: int = 200
    """Recent answers that count."""
    recent: float = 10.0
    """Seconds for which they count: a latency usual under load is late without it."""
    least_samples: int = 20
    """Answers before which nothing is hedged; this many always count, however old they are."""
    shortest_delay: float = 0.001
    """Seconds before which no request counts as late."""
    overdue_factor: float = 2.0
    """A request is overdue after this many times the delay: its replica hangs, or nearly."""
    budget: float = 0.05
    """Hedges per request, at most; 0 for none."""
    burst: int = 20
    """Hedges that may be saved up."""
    surcharge: float = 0.25
    """Share of the price that a hedge costs in addition if its request is late but not overdue.
    So the reserve grows, and short runs stay within the budget despite hedges saved up before.
    """
    reserve: int = 10
    """Hedges kept back for urgent requests, so that some are left when a replica hangs."""
    start: int = 5
    """Hedges in the bucket at first: a replica may hang before requests have paid for any."""


@dataclass(frozen=True, slots=True)
class Usual:
    """How long requests take, in seconds."""

    typical: float
    """Half of them take less."""
    late: float
    overdue: float

    def twice(self) -> "Usual":
        """Twice as long."""
        return Usual(self.typical * 2, self.late * 2, self.overdue * 2)


class HedgeBudget:
    """A bucket that every request fills by a fraction of a hedge.

    The hedges sent never exceed `start` and `budget` times the requests seen.
    """

    def __init__(self, settings: HedgeSettings) -> None:
        self._on = settings.budget > 0
        self._price = 1 / settings.budget if self._on else 0.0
        self._late_price = self._price * (1 + settings.surcharge)
        self._most, self._kept = settings.burst * self._price, settings.reserve * self._price
        self._saved = min(settings.start, settings.burst) * self._price
        """In requests: a hedge is worth `_price` of them."""

    def earn(self) -> None:
        """Counts a request; hedges do not count."""
        self._saved = min(self._saved + 1, self._most)

    def spend(self, urgent: bool = False) -> bool:
        """Whether a hedge may be sent now; if so, it is paid for.

        `urgent`: the request is overdue, or late on a replica under suspicion. A late request that
        is refused may ask again, once, when it is overdue.
        """
        price = self._price if urgent else self._late_price
        least = price + (0.0 if urgent else self._kept)
        allowed = self._on and self._saved >= least
        if allowed:
            self._saved -= price
        return allowed


class HedgeDelay:
    """How long one kind of request to one shard may take before it is late."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._settings = settings
        self._recent = SlidingQuantile(
            settings.window, settings.recent, settings.least_samples, clock
        )

    def observe(self, seconds: float) -> None:
        """Counts an answer: seconds since that attempt was sent, hedge or not.

        Cancelled attempts do not count: they would push the delay up with every hedge.
        """
        self._recent.add(seconds)

    def usual(self) -> Usual | None:
        """How long it takes; None while too few answers are known."""
        settings = self._settings
        if self._recent.count() < settings.least_samples:
            return None
        late = max(self._recent.of(settings.quantile), settings.shortest_delay)
        return Usual(self._recent.of(0.5), late, late * settings.overdue_factor)


class HedgeDelays:
    """The delays of every kind of request; a request of twice the work is another kind."""

    def __init__(self, settings: HedgeSettings, clock: Clock) -> None:
        self._known: dict[tuple[str, int], HedgeDelay] = defaultdict(
            lambda: HedgeDelay(settings, clock)
        )

    def of(self, kind: str, work: int) -> HedgeDelay:
        """The delay of this kind, and of about this much work."""
        return self._known[kind, work.bit_length()]

    def usual(self, kind: str, work: int) -> Usual | None:
        """How long that takes; while too few answers are known, twice as long as half the work."""
        own = self.of(kind, work).usual()
        if own or work <= 1:
            return own
        half = self.of(kind, work // 2).usual()
        return half and half.twice()
