"""Which replica a request goes to, and which replicas are ejected.

This module knows the running requests and recent outcomes of each replica, a clock and a random
generator. It does not know how requests are sent. Two replicas are drawn at random, and the one
with the lower cost gets the request (Mitzenmacher, "The Power of Two Choices in Randomized Load
Balancing", 2001). The cost is recent latency times running requests, as in Finagle's peak EWMA.
Outliers are ejected as in Envoy's outlier detection: never all replicas, unless the settings allow
it.
"""

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Protocol

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import OutlierSettings, ReplicaRecord


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """How replicas are compared, and when one is ejected."""

    half_life: float = 5.0
    """Seconds after which a measured latency counts half.

    The expected latency of an idle replica halves in the same time, so that it gets requests again.
    """
    outliers: OutlierSettings = field(default_factory=OutlierSettings)


class Replica:
    """A server of a pool, with its number of running requests, its latency and its failures."""

    def __init__(
        self,
        address: str,
        settings: ReplicaSettings,
        clock: Clock,
        other_requests: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """`other_requests` returns how many requests run at an address outside the pool."""
        self.address, self._other_requests = address, other_requests
        self.outstanding = 0
        """Number of running requests to the replica."""
        self.record = ReplicaRecord(settings.outliers, clock)
        self.latency = DecayedMean(settings.half_life, clock)
        """Mean latency of answers since the last ejection, in the unit of `Replicas.release`."""

    @property
    def active(self) -> bool:
        """Whether the replica is neither ejected nor half-open."""
        return self.record.is_active

    @property
    def load(self) -> int:
        """Number of running requests at the replica's address, inside and outside the pool."""
        return self.outstanding + self._other_requests(self.address)

    def expected_latency(self) -> float | None:
        """The expected latency, which falls while the replica is idle; None before any answer."""
        mean = self.latency.value
        return None if mean is None else mean * self.latency.last_sample_weight()

    def cost(self, typical: float) -> tuple[float, int]:
        """The cost of a request to the replica; `typical` replaces a latency that is not known."""
        expected = self.expected_latency()
        latency = typical if expected is None else expected
        load = self.load
        return latency * (load + 1), load


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A request that was assigned to a replica. It must be released exactly once."""

    replica: Replica
    probe: bool
    """Whether the replica was ejected or half-open when the request was assigned."""
    may_wait: bool = False
    """Whether the replica may have to wait for a write. Then its latency does not count."""


class Preference(Protocol):
    """Selects the replicas that one request prefers, regardless of load."""

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """Returns the preferred replicas: at least one, unless `replicas` is empty."""

    def may_wait(self, replica: Replica) -> bool:
        """Whether the replica may have to wait before it can answer this request."""


class AnyReplica:
    """The preference of a request that every replica can answer immediately."""

    def select(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        return replicas

    def may_wait(self, _replica: Replica) -> bool:
        return False


ANY_REPLICA: Preference = AnyReplica()


class Replicas:
    """The replicas of one pool; assigns requests to them."""

    def __init__(
        self,
        addresses: Iterable[str],
        settings: ReplicaSettings,
        clock: Clock,
        rng: random.Random,
        *,
        other_requests: Callable[[str], int] = lambda _: 0,
    ) -> None:
        """`other_requests` returns how many requests run at an address outside this pool."""
        self._settings, self._clock, self._rng = settings, clock, rng
        self._other_requests = other_requests
        self.by_address: dict[str, Replica] = {}
        self._draining: dict[str, Replica] = {}
        """Removed replicas that still have running requests."""
        self.update(addresses)

    def update(self, addresses: Iterable[str]) -> None:
        """Replaces the set of replicas. Replicas in both sets keep their records.

        A removed replica that returns while it still has running requests also keeps its record.
        """
        busy = {address: r for address, r in self._draining.items() if r.outstanding}
        before = {**busy, **self.by_address}
        self.by_address = {
            address: before.get(address)
            or Replica(address, self._settings, self._clock, self._other_requests)
            for address in addresses
        }
        self._draining = {
            address: r for address, r in before.items() if address not in self.by_address
        }

    def take(
        self,
        excluding: Collection[str] = (),
        brief: bool = False,
        preference: Preference = ANY_REPLICA,
        repeat: bool = False,
    ) -> Attempt | None:
        """Assigns a request to a replica by load; returns None if all are in `excluding`.

        First attempts may probe a half-open replica, `brief` requests sooner than others. Retries
        never probe while a replica is active. An ejected replica is the last resort.

        `repeat`: if all preferred replicas are in `excluding`, one of these gets the request.
        """
        allowed = [r for a, r in self.by_address.items() if repeat or a not in excluding]
        to_probe = [] if excluding else [r for r in allowed if r.record.wants_probe(brief)]
        half_open = [r for r in allowed if r.record.wants_probe(brief=True)]
        usable = [r for r in allowed if r.active] or half_open or allowed
        preferred = to_probe[:1] or preference.select(usable)
        untried = [r for r in preferred if r.address not in excluding]
        return self._take_cheaper(untried or preferred, preference)

    def take_for_hedge(
        self, excluding: Collection[str], allow_busy: bool, preference: Preference = ANY_REPLICA
    ) -> Attempt | None:
        """Assigns a hedge to an active replica outside `excluding`; returns None if there is none.

        A hedge never probes, because it must be answered soon. `allow_busy` allows a replica with
        running requests.
        """
        active = [r for a, r in self.by_address.items() if a not in excluding and r.active]
        usable = [r for r in preference.select(active) if allow_busy or not r.load]
        return self._take_cheaper(usable, preference)

    def first_available(self, addresses: Sequence[str], probes: bool) -> str:
        """Returns the first address whose replica is active, or `addresses[0]` if none is.

        `probes`: a half-open replica that wants a probe is also available.
        """

        def available(replica: Replica) -> bool:
            return replica.active or (probes and replica.record.wants_probe(brief=True))

        return next((a for a in addresses if available(self.by_address[a])), addresses[0])

    def take_at(self, address: str) -> Attempt:
        """Assigns a request to the replica at `address`, even if it is ejected."""
        return self._assign(self.by_address[address], may_wait=False)

    def take_earlier(self, address: str) -> Attempt | None:
        """Assigns a request that was already sent to `address`, outside the pool.

        Returns None if the replica was removed since, or is inactive while another one is active.
        """
        replica = self.by_address.get(address)
        if replica is None or not (replica.active or not self._has_active()):
            return None
        replica.outstanding += 1
        return Attempt(replica, probe=False)

    def _has_active(self) -> bool:
        return any(replica.active for replica in self.by_address.values())

    def release(
        self, attempt: Attempt, outcome: ReplicaOutcome, latency: float | None = None
    ) -> None:
        """Records the end of a request.

        `latency`: the latency in seconds if all requests are alike, or else the latency divided by
        the typical latency of such a request. None if it cannot be compared with other latencies.
        """
        replica = attempt.replica
        replica.outstanding -= 1
        active = replica.active
        if outcome is ReplicaOutcome.ANSWERED and latency is not None and (active or attempt.probe):
            replica.latency.add(latency)
            if self._is_slow(replica, attempt.probe):
                outcome = ReplicaOutcome.OUTLIER
        should_eject = replica.record.record_outcome(attempt.probe, outcome)
        if should_eject and (not active or self._may_eject()):
            replica.record.eject()
            replica.latency = DecayedMean(self._settings.half_life, self._clock)

    def _take_cheaper(
        self, candidates: Sequence[Replica], preference: Preference
    ) -> Attempt | None:
        if not candidates:
            return None
        drawn = self._rng.sample(candidates, min(2, len(candidates)))
        typical = self._typical_latency()
        chosen = min(drawn, key=lambda replica: replica.cost(typical))
        return self._assign(chosen, preference.may_wait(chosen))

    def _assign(self, replica: Replica, may_wait: bool) -> Attempt:
        replica.outstanding += 1
        return Attempt(replica, replica.record.record_start(), may_wait)

    def _is_slow(self, replica: Replica, probe: bool) -> bool:
        settings = self._settings.outliers
        others = (other.latency for other in self.by_address.values() if other is not replica)
        other_latencies = [
            latency.value
            for latency in others
            if latency.value is not None and latency.samples >= settings.min_samples
        ]
        if not other_latencies or not (probe or replica.latency.samples >= settings.min_samples):
            return False
        latency = replica.latency.value or 0.0
        return latency > settings.latency_factor * median(other_latencies)

    def _may_eject(self) -> bool:
        max_share = self._settings.outliers.max_ejected_share
        if max_share is None:
            return True
        ejected = sum(not r.active for r in self.by_address.values())
        max_ejected = max(int(len(self.by_address) * max_share), 1)
        return ejected < min(max_ejected, len(self.by_address) - 1)

    def _typical_latency(self) -> float:
        expected = (replica.expected_latency() for replica in self.by_address.values())
        return fmean([latency for latency in expected if latency is not None] or [1.0])
