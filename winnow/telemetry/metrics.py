"""Every metric of every process, with its buckets.

Registries are injected, so that tests and several nodes in one process do not collide. Labels never
hold anything that a user wrote.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_FAST = (0.0002, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_SLOW = (0.002, 0.004, 0.008, 0.015, 0.025, 0.04, 0.06, 0.09, 0.13, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
_COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
_SHARES = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999999)

FRONT_STAGES = ("queue", "tokenise", "encode", "retrieve", "read", "merge")
NODE_STAGES = ("queue", "retrieve", "read")


class RpcMetrics:
    """Calls by method and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._latency = Histogram(
            "winnow_request_seconds",
            "Time of a call inside the server, by method and gRPC status",
            ("method", "status"),
            buckets=_SLOW,
            registry=registry,
        )

    def finished(self, method: str, status: str, seconds: float) -> None:
        """Counts one call."""
        self._latency.labels(method, status).observe(seconds)


class FrontMetrics:
    """What a front node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.stage = Histogram(
            "winnow_front_stage_seconds",
            "Time of each stage",
            ("stage",),
            buckets=_FAST,
            registry=registry,
        )
        self.shard = Histogram(
            "winnow_front_shard_seconds",
            "Time of each stage as a shard reported it",
            ("shard", "stage"),
            buckets=_FAST,
            registry=registry,
        )
        self.shard_failures = Counter(
            "winnow_front_shard_failures",
            "Shards that did not answer a question",
            ("shard", "status"),
            registry=registry,
        )
        self.passages_read = Histogram(
            "winnow_front_passages_read",
            "Passages read for one question",
            buckets=_COUNTS,
            registry=registry,
        )
        self.coverage = Histogram(
            "winnow_front_coverage_ratio",
            "Share of known passages that was searched",
            buckets=_SHARES,
            registry=registry,
        )
        self.cache = Counter(
            "winnow_front_encoding_cache",
            "Questions by whether their encoding was cached",
            ("result",),
            registry=registry,
        )
        self.in_flight = Gauge(
            "winnow_front_questions_in_flight", "Questions being answered", registry=registry
        )
        self.index = Gauge(
            "winnow_front_index_passages",
            "Passages known on each shard",
            ("shard",),
            registry=registry,
        )


class NodeMetrics:
    """What a content node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.stage = Histogram(
            "winnow_node_stage_seconds",
            "Time of each stage",
            ("stage",),
            buckets=_FAST,
            registry=registry,
        )
        self.ready = Gauge(
            "winnow_node_ready", "1 while the shard is loaded and served, else 0", registry=registry
        )
        self.passages_read = Counter(
            "winnow_node_passages_read", "Passages read", registry=registry
        )
        self.reads_stopped = Counter(
            "winnow_node_reads_stopped",
            "Passages given up because nobody waited any more",
            registry=registry,
        )
        self.reads_in_hand = Gauge(
            "winnow_node_reads_in_hand",
            "Passages that wait to be read or are being read",
            registry=registry,
        )
        self.seconds_per_read = Gauge(
            "winnow_node_seconds_per_read",
            "Seconds per passage while reading, all threads together; 0 before the first",
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


class BundleMetrics:
    """Which models a process has loaded."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._info = Gauge(
            "winnow_bundle_info",
            "The loaded bundle; always 1",
            ("name", "version", "fingerprint"),
            registry=registry,
        )

    def loaded(self, name: str, version: str, fingerprint: str) -> None:
        """Names the bundle."""
        self._info.labels(name, version, fingerprint).set(1)
