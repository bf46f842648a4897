"""Whether a replica that misbehaved gets requests, and when it is tried again.

Knows one replica's record of outcomes and a clock; knows neither the other replicas nor latencies.
It is a circuit breaker: a replica is active, then ejected for a while, then half-open, when one
request at a time probes it. Ejection times grow as in Envoy's outlier detection:
https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/outlier
"""

from dataclasses import dataclass
from enum import Enum

from winnow.deadline import Clock
from winnow.replicas.policy.outcomes import ReplicaOutcome


class Standing(Enum):
    """Whether a replica gets requests."""

    ACTIVE = "active"
    EJECTED = "ejected"
    HALF_OPEN = "half-open"


_ALIVE = (ReplicaOutcome.ANSWERED, ReplicaOutcome.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlierSettings:
    """When a replica is ejected and for how long."""

    strikes: int = 3
    """Requests in a row that failed or were beaten, upon which it is ejected."""
    base_ejection: float = 1.0
    """Seconds of the first ejection; the n-th in a row lasts n times as long."""
    longest_ejection: float = 30.0
    """Seconds that no ejection exceeds."""
    forgiven_after: float = 60.0
    """Seconds of service after which earlier ejections no longer count."""
    latency_factor: float = 5.0
    """Ejected, too, where its latency is above this many times the median of the others."""
    least_samples: int = 10
    """Answers since it came back, before its latency is judged or judges others."""
    silence: float = 0.5
    """Seconds that a replica may be silent while it is not known how long answers take."""
    brief_probes: float = 1.0
    """Seconds after an ejection in which only brief requests probe: being late costs them least."""
    largest_share: float | None = 0.5
    """Share of the replicas that may be ejected at once: one at least, and never all. None: all."""
    mismatch_ejects: bool = False
    """Whether an `IdentityError` ejects at once: the replica will not change while others wait."""


class ReplicaRecord:
    """The recent outcomes of one replica, and its standing."""

    def __init__(self, settings: OutlierSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._strikes = self._ejections = self._probes = 0
        self._ejected_until: float | None = None
        self._back_since = clock()

    @property
    def standing(self) -> Standing:
        """Its standing now."""
        if self._ejected_until is None:
            return Standing.ACTIVE
        return Standing.EJECTED if self._clock() < self._ejected_until else Standing.HALF_OPEN

    @property
    def suspect(self) -> bool:
        """Whether its last request failed or was beaten, or it is ejected or half-open."""
        return self._strikes > 0 or self._ejected_until is not None

    def wants_probe(self, brief: bool) -> bool:
        """Whether the next request should probe it; `brief`: that request is hardly any work."""
        if self._ejected_until is None or self._probes:
            return False
        since = self._clock() - self._ejected_until
        return since >= (0.0 if brief else self._settings.brief_probes)

    def begin(self) -> bool:
        """Counts a request in; whether it is a probe, because the replica is not active."""
        probe = self._ejected_until is not None
        self._probes += probe
        return probe

    def end(self, probe: bool, outcome: ReplicaOutcome) -> bool:
        """Counts it out; whether the replica deserves to be ejected (`eject`) for it.

        Until it is active again only probes count: other requests were sent before its ejection.
        """
        self._probes -= probe
        standing = self.standing
        if outcome is ReplicaOutcome.ABANDONED or not (probe or standing is Standing.ACTIVE):
            return False
        if outcome in _ALIVE:
            self._readmit()
            return False
        if standing is not Standing.ACTIVE:
            return standing is Standing.HALF_OPEN
        self._strikes += 1
        mismatch = outcome is ReplicaOutcome.MISMATCHED and self._settings.mismatch_ejects
        at_once = mismatch or outcome is ReplicaOutcome.OUTLIER
        return at_once or self._strikes >= self._settings.strikes

    def eject(self) -> None:
        """Ejects it from now on, for longer than the last time."""
        now, settings = self._clock(), self._settings
        if self.standing is Standing.ACTIVE and now - self._back_since >= settings.forgiven_after:
            self._ejections = 0
        self._ejections += 1
        seconds = min(settings.base_ejection * self._ejections, settings.longest_ejection)
        self._ejected_until = now + seconds
        self._strikes = 0

    def _readmit(self) -> None:
        self._strikes = 0
        if self._ejected_until is not None:
            self._ejected_until, self._back_since = None, self._clock()
