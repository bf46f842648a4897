"""Metrics of feeding. Callers cannot choose the value of any label."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry

from winnow.domain.write import Outcome
from winnow.telemetry.metrics import SLOW, MetricFactory

STAGES = ("encode", "store")


class FeedMetrics:
    """Metrics of the writes that are fed to a front."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._stage = make.histogram(
            "winnow_front_feed_stage_seconds",
            "Time of each stage of a feeding request: encode new passages, store them durably",
            "stage",
            buckets=SLOW,
        )
        self._writes = make.counter(
            "winnow_front_feed_writes",
            "Durable writes, by outcome: stored, unchanged or outdated",
            "outcome",
            values=(outcome.value for outcome in Outcome),
        )
        self.in_hand = make.gauge(
            "winnow_front_feed_passages_in_hand",
            "Passages being encoded and stored; a long passage counts as several",
        )
        self.refusals = make.counter(
            "winnow_front_feed_refusals",
            "Feeding requests that were refused because too many passages were in flight",
        )
        self.retries = make.counter(
            "winnow_front_feed_retries",
            "Retries of failed writes to a shard",
            "shard",
        )

    def observe_stage(self, name: str, seconds: float) -> None:
        self._stage.labels(name).observe(seconds)

    def count_writes(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self._writes.labels(outcome.value).inc()
