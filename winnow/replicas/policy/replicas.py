"""Which replica a request goes to, and which replicas are ejected.

Knows replicas by address, the requests in hand and recent outcomes of each, a clock and chance;
does not know how requests are sent. Of two replicas drawn at random the one with the smaller cost
gets the request (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001); cost
is recent latency times requests in hand, as Finagle's peak EWMA has it. Outliers are ejected, but
never all replicas unless that is set, as in Envoy's outlier detection.
"""

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Protocol

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import OutlierSettings, ReplicaRecord, Standing


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """How replicas are compared, and when one is ejected."""

    half_life: float = 5.0
    """Seconds after which a latency counts half, and a replica not asked seems twice as fast."""
    outliers: OutlierSettings = field(default_factory=OutlierSettings)


class Replica:
    """One server of a pool."""

    def __init__(self, address: str, settings: ReplicaSettings, clock: Clock) -> None:
        self.address = address
        self.outstanding = 0
        """Requests it has in hand."""
        self.record = ReplicaRecord(settings.outliers, clock)
        self.latency = DecayedMean(settings.half_life, clock)
        """Seconds of its answers since it came back."""

    @property
    def active(self) -> bool:
        """Whether it gets requests; if not, it was ejected and is probed at most."""
        return self.record.standing is Standing.ACTIVE

    def expected(self) -> float | None:
        """Its latency, the smaller the longer it was not asked, so that it is asked again."""
        mean = self.latency.value
        return None if mean is None else mean * self.latency.freshness()

    def cost(self, typical: float) -> tuple[float, int]:
        """The cost of a request there; a replica without a latency yet counts as `typical`."""
        expected = self.expected()
        seconds = typical if expected is None else expected
        return seconds * (self.outstanding + 1), self.outstanding


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A request in hand of a replica. It must be released, once."""

    replica: Replica
    probe: bool
    """Whether the replica was ejected or half-open when it was taken."""
    waits: bool = False
    """Whether the replica may have to wait before it answers: its time says nothing about it."""


class Preference(Protocol):
    """What one request wants of a replica, beyond its load."""

    def among(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """The preferred ones of these replicas; at least one if there are any."""

    def waits(self, replica: Replica) -> bool:
        """Whether the replica may have to wait before it answers this request."""


class AnyReplica:
    """The preference of a request that every replica can answer at once."""

    def among(self, replicas: Sequence[Replica]) -> Sequence[Replica]:
        """All of them."""
        return replicas

    def waits(self, _replica: Replica) -> bool:
        """None waits."""
        return False


ANY: Preference = AnyReplica()


class Replicas:
    """The replicas of one pool."""

    def __init__(
        self,
        addresses: Iterable[str],
        settings: ReplicaSettings,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self._settings, self._clock, self._chance = settings, clock, chance
        self.known: dict[str, Replica] = {}
        self._away: dict[str, Replica] = {}
        """Replicas that left with requests in hand."""
        self.update(addresses)

    def update(self, addresses: Iterable[str]) -> None:
        """From now on requests go to these replicas; the records of replicas that stay are kept.

        A replica that returns while it still has requests in hand keeps its record, too.
        """
        busy = {address: r for address, r in self._away.items() if r.outstanding}
        before = {**busy, **self.known}
        self.known = {
            address: before.get(address) or Replica(address, self._settings, self._clock)
            for address in addresses
        }
        self._away = {address: r for address, r in before.items() if address not in self.known}

    def take(
        self,
        excluding: Collection[str] = (),
        brief: bool = False,
        preference: Preference = ANY,
        repeat: bool = False,
    ) -> Attempt | None:
        """Gives a request to a replica by its load; None if there is none besides `excluding`.

        A half-open replica is probed, sooner with a `brief` request than with others, but never
        with a request that has failed before. An ejected replica is the last resort.

        `repeat`: if only `excluding` has preferred replicas, one of these gets the request.
        """
        left = [r for address, r in self.known.items() if repeat or address not in excluding]
        probed = [] if excluding else [r for r in left if r.record.wants_probe(brief)]
        half_open = [r for r in left if r.record.wants_probe(brief=True)]
        others = [r for r in left if r.active] or half_open or left
        preferred = probed[:1] or preference.among(others)
        untried = [r for r in preferred if r.address not in excluding]
        return self._take_cheaper(untried or preferred, preference)

    def take_spare(
        self, excluding: Collection[str], busy: bool, preference: Preference = ANY
    ) -> Attempt | None:
        """Gives a hedge to an active replica; None if there is none besides `excluding`.

        `busy`: even to a replica that has requests in hand. A hedge is never a probe: it is sent
        to get an answer soon.
        """
        left = [r for address, r in self.known.items() if address not in excluding and r.active]
        able = [r for r in preference.among(left) if busy or not r.outstanding]
        return self._take_cheaper(able, preference)

    def first_open(self, addresses: Sequence[str], probes: bool) -> str:
        """The first of these addresses that takes a request, or the very first if none does.

        `probes`: whether the request may probe a half-open replica.
        """
        return next((each for each in addresses if self._takes(each, probes)), addresses[0])

    def take_at(self, address: str) -> Attempt:
        """Gives a request to the replica at an address."""
        return self._begin(self.known[address], waits=False)

    def release(
        self, attempt: Attempt, outcome: ReplicaOutcome, seconds: float | None = None
    ) -> None:
        """Counts the end of a request.

        `seconds` it took, if that can be compared with other requests: where requests differ in
        their work, in multiples of the typical time of such a request.
        """
        replica = attempt.replica
        replica.outstanding -= 1
        active = replica.active
        if outcome is ReplicaOutcome.ANSWERED and seconds is not None and (active or attempt.probe):
            replica.latency.add(seconds)
            if self._is_slow(replica, attempt.probe):
                outcome = ReplicaOutcome.OUTLIER
        deserved = replica.record.end(attempt.probe, outcome)
        if deserved and (not active or self._may_eject()):
            replica.record.eject()
            replica.latency = DecayedMean(self._settings.half_life, self._clock)

    def _takes(self, address: str, probes: bool) -> bool:
        replica = self.known[address]
        return replica.active or (probes and replica.record.wants_probe(brief=True))

    def _take_cheaper(
        self, candidates: Sequence[Replica], preference: Preference
    ) -> Attempt | None:
        if not candidates:
            return None
        drawn = self._chance.sample(candidates, min(2, len(candidates)))
        typical = self._typical()
        chosen = min(drawn, key=lambda replica: replica.cost(typical))
        return self._begin(chosen, preference.waits(chosen))

    def _begin(self, replica: Replica, waits: bool) -> Attempt:
        replica.outstanding += 1
        return Attempt(replica, replica.record.begin(), waits)

    def _is_slow(self, replica: Replica, probe: bool) -> bool:
        settings = self._settings.outliers
        others = (other.latency for other in self.known.values() if other is not replica)
        judges = [
            latency.value
            for latency in others
            if latency.value is not None and latency.samples >= settings.least_samples
        ]
        enough = probe or replica.latency.samples >= settings.least_samples
        slowness = replica.latency.value or 0.0
        return enough and bool(judges) and slowness > settings.latency_factor * median(judges)

    def _may_eject(self) -> bool:
        largest = self._settings.outliers.largest_share
        if largest is None:
            return True
        out = sum(not r.active for r in self.known.values())
        share = int(len(self.known) * largest)
        return out < min(max(share, 1), len(self.known) - 1)

    def _typical(self) -> float:
        expected = (replica.expected() for replica in self.known.values())
        return fmean([seconds for seconds in expected if seconds is not None] or [1.0])
