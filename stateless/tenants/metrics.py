"""Metrics of the quotas of tenants. No metric names a tenant."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from winnow.domain.quota import QuotaLimit
from winnow.telemetry.metrics import MetricFactory


class QuotaMetrics:
    """Refusals by limit, and the number of tenants that are near or at a limit."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._refusals = make.counter(
            "winnow_front_quota_refusals",
            "Requests of tenants that were refused because of a quota, by limit",
            "limit",
            values=(limit.value for limit in QuotaLimit),
        )
        self._near = make.gauge(
            "winnow_front_tenants_near_quota",
            "Tenants that used more than 90 % of a quota at their last requests, by limit",
            "limit",
        )
        self._current = make.gauge(
            "winnow_front_quotas_current_timestamp_seconds",
            "Last time at which the quotas in use were those of the file, in seconds since 1970",
        )

    def count_refusal(self, limit: QuotaLimit) -> None:
        """Counts a refused request."""
        self._refusals.labels(limit.value).inc()

    def watch_file(self, current_at: Callable[[], float]) -> None:
        """Exports `current_at()`: last time when the file held these quotas, as Unix seconds."""
        self._current.set_function(current_at)

    def watch(self, limit: QuotaLimit, near: Callable[[], float]) -> None:
        """Exports `near()`: number of tenants that are near a limit."""
        self._near.labels(limit.value).set_function(near)
