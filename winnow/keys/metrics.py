"""Metrics of refused calls and of the key file. No metric names a key."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from winnow.keys.gate import RefusalReason
from winnow.keys.key import Scope
from winnow.telemetry.metrics import MetricFactory, create_series


class KeyMetrics:
    """Metrics of refused calls, and of the age of the keys in use."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._refusals = make.counter(
            "winnow_front_key_refusals",
            "Refused calls over gRPC and HTTP, by the scope that they need and the reason: "
            "unauthenticated (the key is missing or unknown), permission_denied (the key lacks the "
            "scope) or rate (the key exceeds its rate)",
            "scope",
            "reason",
        )
        self._current = make.gauge(
            "winnow_front_keys_current_timestamp_seconds",
            "Last time at which the keys in use were those of the file, in seconds since 1970",
        )
        for scope in Scope:
            create_series(
                self._refusals, scope.value, last_values=[reason.value for reason in RefusalReason]
            )

    def count_refusal(self, scope: Scope, reason: RefusalReason) -> None:
        """Counts a refused call."""
        self._refusals.labels(scope.value, reason.value).inc()

    def watch(self, current_at: Callable[[], float]) -> None:
        """Exports `current_at()`: last time when the file held the keys in use, as Unix seconds."""
        self._current.set_function(current_at)
