"""Metrics of a front node."""

import contextlib
from collections.abc import Collection

from prometheus_client import CollectorRegistry

from winnow.replicas.observer import PoolObserver
from winnow.stateless.shard_histogram import ShardHistogram
from winnow.telemetry.metrics import COUNTS, FAST, SHARES, MetricFactory, create_series

FRONT_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")


class ReadinessMetrics:
    """The metric that tells whether a front node is ready."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ready = MetricFactory(registry).gauge(
            "winnow_front_ready", "1 while the front accepts questions and texts, else 0"
        )


class FrontMetrics:
    """Metrics of the questions that a front node answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.stage = make.histogram(
            "winnow_front_stage_seconds", "Time of each stage", "stage", buckets=FAST
        )
        self.shard = ShardHistogram(
            "winnow_front_shard_seconds", "Time of each stage, as shards report it", FAST
        )
        registry.register(self.shard)
        self.shard_failures = make.counter(
            "winnow_front_shard_failures",
            "Shards that did not answer a question, by reason",
            "shard",
            "status",
        )
        self.passages_read = make.histogram(
            "winnow_front_passages_read", "Passages read for one question", buckets=COUNTS
        )
        self.passages_needed = make.histogram(
            "winnow_front_passages_needed",
            "Passages needed for one question, without unneeded speculative reads",
            buckets=COUNTS,
        )
        self.coverage = make.histogram(
            "winnow_front_coverage_ratio",
            "Share of the index's passages that was searched for a question",
            buckets=SHARES,
        )
        self.without_late_interaction = make.counter(
            "winnow_front_without_late_interaction",
            "Questions that were ranked without late interaction although the bundle has it, by "
            "reason: index (a replica has no token vectors), encoder (the encoder server returned "
            "none) or candidates (new passages have none yet)",
            "reason",
            values=("index", "encoder", "candidates"),
        )
        self.in_flight = make.gauge("winnow_front_questions_in_flight", "Questions being answered")


class AdmissionMetrics:
    """Metrics of the admission of questions."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._admissions = make.counter(
            "winnow_front_admissions",
            "Questions by result: granted, dimmed (granted fewer passages than requested) or "
            "refused",
            "result",
            values=("granted", "dimmed", "refused"),
        )
        self.reads = make.gauge(
            "winnow_front_reads_in_hand", "Passages that the questions in progress may read"
        )
        self.pace = make.gauge(
            "winnow_front_seconds_per_read",
            "Seconds per passage read, over all content nodes, as they report it",
        )

    def count_result(self, result: str) -> None:
        """Counts a question. `result` is "granted", "dimmed" or "refused"."""
        self._admissions.labels(result).inc()


class ClusterMetrics:
    """Metrics of the content nodes of a front node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._index = make.gauge("winnow_front_index_passages", "Passages of each shard", "shard")
        self._replicas = make.gauge(
            "winnow_front_replicas", "Replicas of each shard that get new requests", "shard"
        )
        self.refused = make.gauge(
            "winnow_front_refused_nodes",
            "Nodes that reply but do not belong to the index that is served",
        )
        self.not_loaded = make.gauge(
            "winnow_front_not_loaded_nodes", "Nodes that reply but could not load their shard"
        )

    def set_shard(self, shard: int, passages: int, replicas: int) -> None:
        """Sets the numbers of passages and replicas of one shard."""
        self._index.labels(str(shard)).set(passages)
        self._replicas.labels(str(shard)).set(replicas)

    def clear(self) -> None:
        """Removes the series of all shards. Call it before another index is served."""
        self._index.clear()
        self._replicas.clear()


class ReplicaMetrics:
    """Metrics of the requests that a front node sends to replicas.

    The label `replica` is the replica's address.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.hedges = make.counter(
            "winnow_front_hedges",
            "Hedges of late requests, by result: sent, won, or refused because the budget was "
            "spent",
            "shard",
            "result",
        )
        self.retries = make.counter(
            "winnow_front_retries",
            "Retries of failed requests, by result: sent or won",
            "shard",
            "result",
        )
        self.ejections = make.counter(
            "winnow_front_ejections",
            "Ejections of replicas that failed, hung or were too slow",
            "shard",
            "replica",
        )
        self.outstanding = make.gauge(
            "winnow_front_replica_outstanding",
            "Requests in progress on a replica, without calls for several shards",
            "shard",
            "replica",
        )
        self.lag = make.gauge(
            "winnow_front_replica_lag_writes",
            "Writes of its shard that a replica is not known to have",
            "shard",
            "replica",
        )

    def for_shard(self, shard: int) -> "ShardPoolMetrics":
        """Returns the metrics of the replicas of one shard."""
        return ShardPoolMetrics(self, str(shard))


class ShardPoolMetrics(PoolObserver):
    """Updates the `ReplicaMetrics` of one shard with the events of its pool."""

    def __init__(self, metrics: ReplicaMetrics, shard: str) -> None:
        self._metrics, self._shard = metrics, shard
        create_series(metrics.hedges, shard, last_values=("sent", "won", "refused"))
        create_series(metrics.retries, shard, last_values=("sent", "won"))

    def on_members(self, addresses: Collection[str]) -> None:
        """Creates the ejection series of these replicas at 0, so that rates count the first one."""
        create_series(self._metrics.ejections, self._shard, last_values=addresses)

    def on_removed(self, addresses: Collection[str]) -> None:
        """Removes the series of these replicas."""
        for address in addresses:
            for metric in (self._metrics.ejections, self._metrics.outstanding, self._metrics.lag):
                with contextlib.suppress(KeyError):
                    metric.remove(self._shard, address)

    def on_outstanding(self, address: str, requests: int) -> None:
        """Sets the number of running requests of a replica."""
        self._metrics.outstanding.labels(self._shard, address).set(requests)

    def on_ejected(self, address: str, first: bool, error: BaseException | None) -> None:
        """Counts an ejection."""
        self._metrics.ejections.labels(self._shard, address).inc()

    def set_lag(self, address: str, writes: int) -> None:
        """Sets the number of writes of its shard that a replica is not known to have."""
        self._metrics.lag.labels(self._shard, address).set(writes)

    def on_hedge(self, result: str) -> None:
        """Counts a hedge: sent, won or refused."""
        self._metrics.hedges.labels(self._shard, result).inc()

    def on_retry(self, result: str) -> None:
        """Counts a retry: sent or won."""
        self._metrics.retries.labels(self._shard, result).inc()
