"""Metrics of a content node."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from winnow.domain.write import Outcome, Written
from winnow.telemetry.metrics import COUNTS, FAST, LONG, MetricFactory

NODE_STAGES = ("queue", "retrieve", "read")


class NodeMetrics:
    """Metrics of retrieving and reading."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.stage = make.histogram(
            "winnow_node_stage_seconds", "Time of each stage", "stage", buckets=FAST
        )
        self.passages_read = make.counter("winnow_node_passages_read", "Passages read")
        self.reads_stopped = make.counter(
            "winnow_node_reads_stopped",
            "Passages that were not read because time ran out or the caller gave up",
        )
        self.reads_in_hand = make.gauge(
            "winnow_node_reads_in_hand", "Passages that wait to be read or are being read"
        )
        self.seconds_per_read = make.gauge(
            "winnow_node_seconds_per_read",
            "Seconds per passage while reading, all threads together; first an estimate",
        )
        self.admission = make.counter(
            "winnow_node_admission",
            "Calls by whether they were let in",
            "result",
            values=("granted", "refused"),
        )
        self.runs_ended = make.counter(
            "winnow_node_runs_ended", "Passages given up in the middle of being read"
        )
        self.threads_busy = make.gauge("winnow_node_reader_threads_busy", "Reader threads at work")
        self.threads = make.gauge("winnow_node_reader_threads", "Reader threads there are")
        self.passages = make.gauge("winnow_node_index_passages", "Passages in the shard", "shard")


class ShardMetrics:
    """Metrics of whether a shard is served."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.ready = make.gauge(
            "winnow_node_ready", "1 while the shard is loaded and served, else 0"
        )
        self.changed = make.gauge(
            "winnow_node_shard_changed",
            "1 while the shard's files on disk are not those that were loaded, else 0",
        )


class WriteMetrics:
    """Metrics of writes to a shard."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._sequence = make.gauge("winnow_node_sequence", "The last write that is served")
        self._unmerged = make.gauge("winnow_node_unmerged_writes", "Writes since the last merge")
        self._limit = make.gauge(
            "winnow_node_unmerged_limit_writes",
            "Writes since the last merge beyond which no more are taken; 0 where none are taken",
        )
        self._waiting = make.gauge(
            "winnow_node_writes_waiting", "Writes that wait to be stored or are being stored"
        )
        self._writes = make.counter(
            "winnow_node_writes",
            "Writes that are durable, by outcome: stored, unchanged or outdated",
            "outcome",
            values=(outcome.value for outcome in Outcome),
        )
        self.commit = make.histogram(
            "winnow_node_commit_seconds",
            "Time from the beginning of a transaction until its writes are durable",
            buckets=FAST,
        )
        self.batch = make.histogram(
            "winnow_node_commit_writes", "Writes that shared a transaction", buckets=COUNTS
        )

    def observe_waiting(self, waiting: Callable[[], int], limit: int) -> None:
        """Sets the limit of unmerged writes. Each scrape calls `waiting` for the waiting writes."""
        self._waiting.set_function(waiting)
        self._limit.set(limit)

    def set_served(self, sequence: int, unmerged: int) -> None:
        """Sets the sequence number of the last served write, and the number of unmerged writes."""
        self._sequence.set(sequence)
        self._unmerged.set(unmerged)

    def count_durable(self, writes: Iterable[Written]) -> None:
        """Counts durable writes by outcome."""
        for write in writes:
            self._writes.labels(write.outcome.value).inc()


class MergeMetrics:
    """Metrics of merges."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.merges = make.counter(
            "winnow_node_merges",
            "Merges by how they ended: done or failed",
            "result",
            values=("done", "failed"),
        )
        self.running = make.gauge("winnow_node_merging", "1 while the shard is merged, else 0")
        self.seconds = make.histogram(
            "winnow_node_merge_seconds",
            "Time from the beginning of a merge until its result is served",
            buckets=LONG,
        )
        self.holes = make.gauge(
            "winnow_node_holes", "Rows of the shard that hold no passage any more"
        )
