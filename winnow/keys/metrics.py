"""Metrics of keys; they name no key."""

from prometheus_client import CollectorRegistry, Counter

from winnow.keys.gate import Reason
from winnow.keys.scope import Scope
from winnow.telemetry.metrics import counted


class KeyMetrics:
    """Calls that the gate refuses."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "winnow_front_key_refusals",
            "Calls by gRPC or HTTP that were refused, by the scope that they need and the reason: "
            "unauthenticated (no key, or none that is known), permission_denied (the key has "
            "another scope) or rate (the key was used too often)",
            ("scope", "reason"),
            registry=registry,
        )
        for scope in Scope:
            counted(self._refusals, scope.value, last=[reason.value for reason in Reason])

    def refused(self, scope: Scope, reason: Reason) -> None:
        """Counts a call."""
        self._refusals.labels(scope.value, reason.value).inc()
