"""Metrics of a content node."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from winnow.domain.write import Outcome, Written
from winnow.telemetry.buckets import COUNTS, FAST, LONG
from winnow.telemetry.metrics import counted

NODE_STAGES = ("queue", "retrieve", "read")


class NodeMetrics:
    """What a content node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.stage = Histogram(
            "winnow_node_stage_seconds",
            "Time of each stage",
            ("stage",),
            buckets=FAST,
            registry=registry,
        )
        self.ready = Gauge(
            "winnow_node_ready", "1 while the shard is loaded and served, else 0", registry=registry
        )
        self.changed = Gauge(
            "winnow_node_shard_changed",
            "1 while the shard's files on disk are not those that were loaded, else 0",
            registry=registry,
        )
        self.passages_read = Counter(
            "winnow_node_passages_read", "Passages read", registry=registry
        )
        self.reads_stopped = Counter(
            "winnow_node_reads_stopped",
            "Passages that were not read because time ran out or the caller gave up",
            registry=registry,
        )
        self.reads_in_hand = Gauge(
            "winnow_node_reads_in_hand",
            "Passages that wait to be read or are being read",
            registry=registry,
        )
        self.seconds_per_read = Gauge(
            "winnow_node_seconds_per_read",
            "Seconds per passage while reading, all threads together; first an estimate",
            registry=registry,
        )
        self.admission = Counter(
            "winnow_node_admission",
            "Calls by whether they were let in",
            ("result",),
            registry=registry,
        )
        counted(self.admission, last=("granted", "refused"))
        self.runs_ended = Counter(
            "winnow_node_runs_ended",
            "Passages given up in the middle of being read",
            registry=registry,
        )
        self.threads_busy = Gauge(
            "winnow_node_reader_threads_busy", "Reader threads at work", registry=registry
        )
        self.threads = Gauge(
            "winnow_node_reader_threads", "Reader threads there are", registry=registry
        )
        self.index = Gauge(
            "winnow_node_index_passages", "Passages in the shard", ("shard",), registry=registry
        )


class WriteMetrics:
    """What is written to the shard of a content node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sequence = Gauge(
            "winnow_node_sequence", "The last write that is served", registry=registry
        )
        self._unmerged = Gauge(
            "winnow_node_unmerged_writes", "Writes since the last merge", registry=registry
        )
        self._limit = Gauge(
            "winnow_node_unmerged_limit_writes",
            "Writes since the last merge beyond which no more are taken; 0 where none are taken",
            registry=registry,
        )
        self._waiting = Gauge(
            "winnow_node_writes_waiting",
            "Writes that wait to be stored or are being stored",
            registry=registry,
        )
        self._writes = Counter(
            "winnow_node_writes",
            "Writes that are durable, by outcome: stored, unchanged or outdated",
            ("outcome",),
            registry=registry,
        )
        counted(self._writes, last=(outcome.value for outcome in Outcome))
        self.commit = Histogram(
            "winnow_node_commit_seconds",
            "Time from the beginning of a transaction until its writes are durable",
            buckets=FAST,
            registry=registry,
        )
        self.batch = Histogram(
            "winnow_node_commit_writes",
            "Writes that shared a transaction",
            buckets=COUNTS,
            registry=registry,
        )

    def opened(self, waiting: Callable[[], int], limit: int) -> None:
        """A shard takes writes from now on; `waiting` is asked whenever somebody looks."""
        self._waiting.set_function(waiting)
        self._limit.set(limit)

    def served(self, sequence: int, unmerged: int) -> None:
        """Says which write is served last, and how many were not merged yet."""
        self._sequence.set(sequence)
        self._unmerged.set(unmerged)

    def written(self, writes: Iterable[Written]) -> None:
        """Counts writes that are durable."""
        for write in writes:
            self._writes.labels(write.outcome.value).inc()


class MergeMetrics:
    """What a content node that takes writes does with them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.merges = Counter(
            "winnow_node_merges",
            "Merges by how they ended: done or failed",
            ("result",),
            registry=registry,
        )
        counted(self.merges, last=("done", "failed"))
        self.running = Gauge(
            "winnow_node_merging", "1 while the shard is merged, else 0", registry=registry
        )
        self.seconds = Histogram(
            "winnow_node_merge_seconds",
            "Time from the beginning of a merge until its result is served",
            buckets=LONG,
            registry=registry,
        )
        self.holes = Gauge(
            "winnow_node_holes",
            "Rows of the shard that hold no passage any more",
            registry=registry,
        )
