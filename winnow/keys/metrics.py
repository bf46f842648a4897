"""Metrics of keys; they name no key."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from winnow.keys.gate import RefusalReason
from winnow.keys.scope import Scope
from winnow.telemetry.metrics import counted


class KeyMetrics:
    """Calls that the gate refuses, and how old the keys are that it knows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "winnow_front_key_refusals",
            "Calls by gRPC or HTTP that were refused, by the scope that they need and the reason: "
            "unauthenticated (no key, or none that is known), permission_denied (the key has "
            "another scope) or rate (the key was used too often)",
            ("scope", "reason"),
            registry=registry,
        )
        self._current = Gauge(
            "winnow_front_keys_current_timestamp_seconds",
            "When the keys in use were last found to be those of the file; in seconds since 1970",
            registry=registry,
        )
        for scope in Scope:
            counted(self._refusals, scope.value, last=[reason.value for reason in RefusalReason])

    def refused(self, scope: Scope, reason: RefusalReason) -> None:
        """Counts a call."""
        self._refusals.labels(scope.value, reason.value).inc()

    def watch(self, current_at: Callable[[], float]) -> None:
        """Shows when the keys in use were last found to be those of the file."""
        self._current.set_function(current_at)
