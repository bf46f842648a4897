"""Metrics of a content node."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from winnow.domain.write import Outcome, Written
from winnow.telemetry.metrics import COUNTS, FAST, LONG, MetricFactory


class NodeMetrics:
    """Metrics of retrieval and reading, which all shards of a process share."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.stage = make.histogram(
            "winnow_node_stage_seconds", "Time of each stage", "stage", buckets=FAST
        )
        self.passages_read = make.counter("winnow_node_passages_read", "Passages read")
        self.reads_stopped = make.counter(
            "winnow_node_reads_stopped",
            "Passages that were not read because the deadline passed or the caller cancelled",
        )
        self.reads_in_hand = make.gauge(
            "winnow_node_reads_in_hand", "Passages that wait to be read or are being read"
        )
        self.seconds_per_read = make.gauge(
            "winnow_node_seconds_per_read",
            "Seconds per passage while all threads read; estimated until passages were read",
        )
        self.admission = make.counter(
            "winnow_node_admission",
            "Calls by whether they were admitted: granted or refused",
            "result",
            values=("granted", "refused"),
        )
        self.runs_ended = make.counter(
            "winnow_node_runs_ended", "Passages whose reading was stopped before its end"
        )
        self.threads_busy = make.gauge("winnow_node_reader_threads_busy", "Busy reader threads")
        self.threads = make.gauge("winnow_node_reader_threads", "Number of reader threads")
        self.passages = make.gauge("winnow_node_index_passages", "Passages in the shard", "shard")


class ShardMetrics:
    """Metrics that tell whether a shard is served, and whether its files changed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.ready = make.gauge(
            "winnow_node_ready", "1 while the shard is loaded and served, else 0"
        )
        self.changed = make.gauge(
            "winnow_node_shard_changed",
            "1 while the shard's files on disk differ from the loaded ones, else 0",
        )


class WriteMetrics:
    """Metrics of writes to a shard."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._sequence = make.gauge(
            "winnow_node_sequence", "Sequence number of the last write that is served"
        )
        self._unmerged = make.gauge("winnow_node_unmerged_writes", "Writes since the last merge")
        self._limit = make.gauge(
            "winnow_node_unmerged_limit_writes",
            "Limit of unmerged writes, beyond which writes are refused; 0 if the shard takes no "
            "writes",
        )
        self._waiting = make.gauge(
            "winnow_node_writes_waiting", "Writes that are queued or being stored"
        )
        self._writes = make.counter(
            "winnow_node_writes",
            "Durable writes, by outcome: stored, unchanged or outdated",
            "outcome",
            values=(outcome.value for outcome in Outcome),
        )
        self.commit = make.histogram(
            "winnow_node_commit_seconds",
            "Time from the beginning of a transaction until its writes are durable",
            buckets=FAST,
        )
        self.batch = make.histogram(
            "winnow_node_commit_writes", "Number of writes in a transaction", buckets=COUNTS
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
    """Metrics of the merges of a shard."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.merges = make.counter(
            "winnow_node_merges",
            "Merges by result: done or failed",
            "result",
            values=("done", "failed"),
        )
        self.running = make.gauge(
            "winnow_node_merging", "1 while the shard is being merged, else 0"
        )
        self.seconds = make.histogram(
            "winnow_node_merge_seconds",
            "Time from the beginning of a merge until its result is served",
            buckets=LONG,
        )
        self.holes = make.gauge(
            "winnow_node_holes", "Rows of the shard whose passages were deleted or replaced"
        )


class ArchiveMetrics:
    """Metrics of the archiving of a shard."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.archived = make.gauge(
            "winnow_node_archived", "1 while the shard is archived or being restored, else 0"
        )
        self.archives = make.counter(
            "winnow_node_archives",
            "Attempts to archive the shard by result: done, abandoned (it was used) or failed",
            "result",
            values=("done", "abandoned", "failed"),
        )
        self.restores = make.counter(
            "winnow_node_restores",
            "Restores of the archived shard by result: done or failed",
            "result",
            values=("done", "failed"),
        )
        self.restore_seconds = make.histogram(
            "winnow_node_restore_seconds",
            "Time from the first call for the archived shard until it is served",
            buckets=LONG,
        )
