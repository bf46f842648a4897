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

    def count_refusal(self, limit: QuotaLimit) -> None:
        """Counts a refused request."""
        self._refusals.labels(limit.value).inc()

    def watch(self, limit: QuotaLimit, near: Callable[[], float]) -> None:
        """Exports `near()`: number of tenants that are near a limit."""
        self._near.labels(limit.value).set_function(near)
