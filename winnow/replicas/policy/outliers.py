"""Outlier ejection: whether a replica that failed gets requests, and when it is probed.

This module knows the outcomes of one replica and a clock. It knows neither other replicas nor
latencies. It is a circuit breaker: an active replica that fails is ejected for a while, then
half-open. One request at a time probes a half-open replica. Ejection times grow as in Envoy's
outlier detection:
https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/outlier
"""

from dataclasses import dataclass
from enum import Enum

from winnow.deadline import Clock
from winnow.replicas.policy.outcomes import ReplicaOutcome


class EjectionState(Enum):
    """Whether a replica gets requests."""

    ACTIVE = "active"
    EJECTED = "ejected"
    HALF_OPEN = "half-open"


_ALIVE = (ReplicaOutcome.ANSWERED, ReplicaOutcome.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlierSettings:
    """When a replica is ejected and for how long."""

    consecutive_failures: int = 3
    """Number of consecutive requests that fail or lose to a hedge before a replica is ejected."""
    base_ejection_seconds: float = 1.0
    """Seconds of the first ejection; the n-th in a row lasts n times as long."""
    max_ejection_seconds: float = 30.0
    """Longest ejection, in seconds."""
    reset_after: float = 60.0
    """Seconds without an ejection after which earlier ejections no longer count."""
    latency_factor: float = 5.0
    """A replica is also ejected if its latency exceeds this multiple of the others' median."""
    min_samples: int = 10
    """Answers since the last ejection that a replica needs before latencies are compared."""
    silence: float = 0.5
    """Seconds that a replica may be silent while there is no latency estimate."""
    brief_probe_period: float = 1.0
    """Seconds after an ejection in which only brief requests probe. A delay costs these least."""
    max_ejected_share: float | None = 0.5
    """Share of the replicas that may be ejected at the same time; None allows all.

    A share allows at least one ejected replica, but never all replicas.
    """
    mismatch_ejects: bool = False
    """Whether a single `IdentityError` ejects: trying the replica again would not help."""


class ReplicaRecord:
    """The recent outcomes of one replica, and its ejection state."""

    def __init__(self, settings: OutlierSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._failures = self._ejections = self._probes = 0
        self._ejected_until: float | None = None
        self._active_since = clock()

    @property
    def is_active(self) -> bool:
        """Whether the state is `ACTIVE`."""
        return self._ejected_until is None

    @property
    def state(self) -> EjectionState:
        if self._ejected_until is None:
            return EjectionState.ACTIVE
        return (
            EjectionState.EJECTED
            if self._clock() < self._ejected_until
            else EjectionState.HALF_OPEN
        )

    @property
    def is_suspect(self) -> bool:
        """Whether the replica's last request failed or lost to a hedge, or the replica is ejected
        or half-open.
        """
        return self._failures > 0 or self._ejected_until is not None

    def wants_probe(self, brief: bool) -> bool:
        """Whether the next request should probe the replica.

        `brief`: the request is very little work, so that it may probe sooner.
        """
        if self._ejected_until is None or self._probes:
            return False
        since = self._clock() - self._ejected_until
        return since >= (0.0 if brief else self._settings.brief_probe_period)

    def record_start(self) -> bool:
        """Records the start of a request. Returns whether it probes an inactive replica."""
        probe = self._ejected_until is not None
        self._probes += probe
        return probe

    def record_outcome(self, probe: bool, outcome: ReplicaOutcome) -> bool:
        """Records the outcome of a request. Returns whether the caller should `eject` the replica.

        `probe` is what `record_start` returned. While the replica is inactive, only probes count:
        other requests were sent before the ejection.
        """
        self._probes -= probe
        state = self.state
        if outcome is ReplicaOutcome.ABANDONED or not (probe or state is EjectionState.ACTIVE):
            return False
        if outcome in _ALIVE:
            self._readmit()
            return False
        if state is not EjectionState.ACTIVE:
            return state is EjectionState.HALF_OPEN
        self._failures += 1
        mismatch = outcome is ReplicaOutcome.MISMATCHED and self._settings.mismatch_ejects
        ejects_alone = mismatch or outcome is ReplicaOutcome.OUTLIER
        return ejects_alone or self._failures >= self._settings.consecutive_failures

    def eject(self) -> None:
        """Ejects the replica, for longer than the last time."""
        now, settings = self._clock(), self._settings
        if self.state is EjectionState.ACTIVE and now - self._active_since >= settings.reset_after:
            self._ejections = 0
        self._ejections += 1
        seconds = min(
            settings.base_ejection_seconds * self._ejections, settings.max_ejection_seconds
        )
        self._ejected_until = now + seconds
        self._failures = 0

    def _readmit(self) -> None:
        self._failures = 0
        if self._ejected_until is not None:
            self._ejected_until, self._active_since = None, self._clock()
