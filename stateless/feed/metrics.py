"""Metrics of feeding. No label is made of what a caller sends."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from winnow.domain.write import Outcome
from winnow.telemetry.buckets import SLOW
from winnow.telemetry.metrics import counted

STAGES = ("encode", "store")


class FeedMetrics:
    """What is fed to a front."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._stage = Histogram(
            "winnow_front_feed_stage_seconds",
            "Time of each stage of a request that feeds: encode what is new, store it durably",
            ("stage",),
            buckets=SLOW,
            registry=registry,
        )
        self._writes = Counter(
            "winnow_front_feed_writes",
            "Writes that are durable, by outcome: stored, unchanged or outdated",
            ("outcome",),
            registry=registry,
        )
        counted(self._writes, last=(outcome.value for outcome in Outcome))
        self.in_hand = Gauge(
            "winnow_front_feed_passages_in_hand",
            "Passages being encoded and stored; a long one counts as several",
            registry=registry,
        )
        self.refusals = Counter(
            "winnow_front_feed_refusals",
            "Requests that feed and were refused because too much was in hand",
            registry=registry,
        )
        self.retries = Counter(
            "winnow_front_feed_retries",
            "Writes to a shard that were sent again because they had failed",
            ("shard",),
            registry=registry,
        )

    def stage(self, name: str, seconds: float) -> None:
        """Takes the time of a stage."""
        self._stage.labels(name).observe(seconds)

    def written(self, outcomes: Iterable[Outcome]) -> None:
        """Counts writes."""
        for outcome in outcomes:
            self._writes.labels(outcome.value).inc()
