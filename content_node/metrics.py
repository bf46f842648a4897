"""Metrics of a content node."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from winnow.telemetry.buckets import COUNTS, FAST, LONG

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


class FeedMetrics:
    """What is written to the shard of a content node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sequence = Gauge(
            "winnow_node_sequence", "The last write that is served", registry=registry
        )
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


class MergeMetrics:
    """What a content node that takes writes does with them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.merges = Counter(
            "winnow_node_merges", "Merges by how they ended", ("result",), registry=registry
        )
        self.seconds = Histogram(
            "winnow_node_merge_seconds",
            "Time from the beginning of a merge until its result is served",
            buckets=LONG,
            registry=registry,
        )
        self.unmerged = Gauge(
            "winnow_node_unmerged_writes", "Writes since the last merge", registry=registry
        )
        self.holes = Gauge(
            "winnow_node_holes",
            "Rows of the shard that hold no passage any more",
            registry=registry,
        )
