"""Metrics of feeding. No label has a value that a caller chooses."""

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
            "Time of each stage of a request that feeds: encode what is new, store it durably",
            "stage",
            buckets=SLOW,
        )
        self._writes = make.counter(
            "winnow_front_feed_writes",
            "Writes that are durable, by outcome: stored, unchanged or outdated",
            "outcome",
            values=(outcome.value for outcome in Outcome),
        )
        self.in_hand = make.gauge(
            "winnow_front_feed_passages_in_hand",
            "Passages being encoded and stored; a long one counts as several",
        )
        self.refusals = make.counter(
            "winnow_front_feed_refusals",
            "Requests that feed and were refused because too much was in hand",
        )
        self.retries = make.counter(
            "winnow_front_feed_retries",
            "Writes to a shard that were sent again because they had failed",
            "shard",
        )

    def observe_stage(self, name: str, seconds: float) -> None:
        self._stage.labels(name).observe(seconds)

    def count_writes(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self._writes.labels(outcome.value).inc()
