"""Which replica of a shard a request goes to.

Knows replicas by address, the requests in hand and recent outcomes of each, a clock and chance;
does not know how requests are sent. Of two replicas drawn at random the one with the smaller cost
gets the request (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001); cost
is recent latency times requests in hand, as Finagle's peak EWMA has it. Outliers are ejected, but
never all replicas, as in Envoy's outlier detection. One that lags behind in the log that all follow
is asked only if no other can be.
"""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import OutlierSettings, ReplicaRecord, Standing
from winnow.stateless.policy.progress import ReplicaProgress


@dataclass(frozen=True, slots=True)
class ReplicaSettings:
    """How replicas are compared, and when one is left out."""

    half_life: float = 5.0
    """Seconds after which a latency counts half, and a replica not asked seems twice as fast."""
    outliers: OutlierSettings = field(default_factory=OutlierSettings)


class Replica:
    """One node that serves the shard."""

    def __init__(self, address: str, settings: ReplicaSettings, clock: Clock) -> None:
        self.address = address
        self.outstanding = 0
        """Requests it has in hand."""
        self.record = ReplicaRecord(settings.outliers, clock)
        self.latency = DecayedMean(settings.half_life, clock)
        """Seconds of its answers since it came back."""
        self.progress = ReplicaProgress(clock)

    def expected(self) -> float | None:
        """Its latency, the smaller the longer it was not asked, so that it is asked again."""
        mean = self.latency.value
        return None if mean is None else mean * self.latency.freshness()

    def cost(self, typical: float) -> tuple[float, int]:
        """The cost of a request there; a replica without a latency yet counts as `typical`."""
        expected = self.expected()
        seconds = typical if expected is None else expected
        return seconds * (self.outstanding + 1), self.outstanding


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request in hand of a replica. It must be released, once."""

    replica: Replica
    probe: bool
    """Whether the replica was ejected or half-open when it was taken."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a replica does, for people who look after it."""

    active: bool
    """Whether it gets requests; if not, it was ejected."""
    calls: int = 0
    """Requests that it has in hand."""
    sequence: int = 0
    """The last write that it is known to have."""
    behind: int = 0
    """Writes that another replica has and it does not."""


class Replicas:
    """The replicas of one shard."""

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

        So is that of a replica that returns while it still has requests in hand.
        """
        busy = {address: r for address, r in self._away.items() if r.outstanding}
        before = {**busy, **self.known}
        self.known = {
            address: before.get(address) or Replica(address, self._settings, self._clock)
            for address in addresses
        }
        self._away = {address: r for address, r in before.items() if address not in self.known}

    def told(self, sequences: Mapping[str, int], log_id: str = "") -> None:
        """Replicas, by address, said what their last writes are, in the log of the shard."""
        for address, sequence in sequences.items():
            if address in self.known:
                self.known[address].progress.told(sequence, log_id)

    def behind(self) -> dict[str, int]:
        """How many writes each replica is behind the one that has most, as far as is known."""
        known = {address: r.progress.sequence for address, r in self.known.items()}
        most = max(known.values(), default=0)
        return {address: most - sequence for address, sequence in known.items()}

    def lagging(self) -> set[str]:
        """The replicas that do not have what another one had a while ago."""
        return {address for address, r in self.known.items() if self._lags(r)}

    def conditions(self) -> dict[str, Condition]:
        """How each replica does, by address."""
        behind = self.behind()
        return {
            address: Condition(
                r.record.standing is Standing.ACTIVE,
                r.outstanding,
                r.progress.sequence,
                behind[address],
            )
            for address, r in self.known.items()
        }

    def take(
        self, excluding: Collection[str] = (), brief: bool = False, after: int = 0
    ) -> Attempt | None:
        """Gives a request to a replica; None if there is none besides `excluding`.

        One that has the write `after` is preferred, and one that does not lag. A half-open replica
        is probed, sooner with a `brief` request than with others, but never with a request that has
        failed before. An ejected replica is the last resort.
        """
        left = [r for address, r in self.known.items() if address not in excluding]
        probed = [] if excluding else [r for r in left if r.record.wants_probe(brief)]
        half_open = [r for r in left if r.record.wants_probe(brief=True)]
        others = self._active(left) or half_open or left
        return self._take(probed[:1] or self._advanced(others, after))

    def take_spare(self, excluding: Collection[str], busy: bool, after: int = 0) -> Attempt | None:
        """Gives a hedge to an active replica; None if there is none besides `excluding`.

        `busy`: even to a replica that has requests in hand. A hedge is never a probe: it is sent
        to get an answer soon.
        """
        left = [r for address, r in self.known.items() if address not in excluding]
        able = self._advanced(self._active(left), after)
        return self._take([r for r in able if busy or not r.outstanding])

    def _active(self, replicas: Iterable[Replica]) -> list[Replica]:
        return [r for r in replicas if r.record.standing is Standing.ACTIVE]

    def _advanced(self, replicas: Sequence[Replica], after: int) -> Sequence[Replica]:
        """Those that have the write `after` and do not lag, as far as there are any."""
        having = [r for r in replicas if r.progress.sequence >= after] or replicas
        current = [r for r in having if not self._lags(r)]
        most = max((r.progress.sequence for r in having), default=0)
        return current or [r for r in having if r.progress.sequence == most]

    def _lags(self, replica: Replica) -> bool:
        sequence = replica.progress.sequence
        return any(other.progress.settled > sequence for other in self.known.values())

    def _take(self, candidates: Sequence[Replica]) -> Attempt | None:
        if not candidates:
            return None
        drawn = self._chance.sample(candidates, min(2, len(candidates)))
        typical = self._typical()
        chosen = min(drawn, key=lambda replica: replica.cost(typical))
        chosen.outstanding += 1
        return Attempt(chosen, chosen.record.begin())

    def release(
        self, attempt: Attempt, outcome: ReplicaOutcome, seconds: float | None = None
    ) -> None:
        """Counts the end of a request.

        `seconds` it took, if that can be compared with other requests: where requests differ in
        their work, in multiples of the typical time of such a request.
        """
        replica = attempt.replica
        replica.outstanding -= 1
        active = replica.record.standing is Standing.ACTIVE
        if outcome is ReplicaOutcome.ANSWERED and seconds is not None and (active or attempt.probe):
            replica.latency.add(seconds)
            if self._is_slow(replica, attempt.probe):
                outcome = ReplicaOutcome.OUTLIER
        deserved = replica.record.end(attempt.probe, outcome)
        if deserved and (not active or self._may_eject()):
            replica.record.eject()
            replica.latency = DecayedMean(self._settings.half_life, self._clock)

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
        out = sum(r.record.standing is not Standing.ACTIVE for r in self.known.values())
        share = int(len(self.known) * self._settings.outliers.largest_share)
        return out < min(max(share, 1), len(self.known) - 1)

    def _typical(self) -> float:
        expected = (replica.expected() for replica in self.known.values())
        return fmean([seconds for seconds in expected if seconds is not None] or [1.0])
