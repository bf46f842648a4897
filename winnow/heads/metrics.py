"""Metrics of heads in memory, by encoder group. The encoder group is the label `ring`.

Head ids are no label, because there are thousands of heads.
"""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import FAST, SLOW, MetricFactory, create_series

_LOAD_RESULTS = ("loaded", "replaced", "broken", "unknown", "no_room", "unreachable")


class HeadCacheMetrics:
    """Metrics of the heads in memory, for all encoder groups of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.lookups = make.counter(
            "winnow_heads_lookups",
            "Requested heads, by whether they were in memory: hit or miss",
            "ring",
            "result",
        )
        self.loads = make.counter(
            "winnow_heads_loads",
            "Attempts to load a head or swap its version: loaded, replaced, broken (or of another "
            "encoder), unknown, no_room, or unreachable",
            "ring",
            "result",
        )
        self.load_seconds = make.histogram(
            "winnow_heads_load_seconds",
            "Time to load a head that was not in memory",
            "ring",
            buckets=SLOW,
        )
        self.evictions = make.counter(
            "winnow_heads_evictions", "Heads evicted from memory to make room for others", "ring"
        )
        self.checks = make.counter(
            "winnow_heads_looks",
            "Checks of the store for a new version of a head in memory: ok or failed",
            "ring",
            "result",
        )
        self.applied = make.counter(
            "winnow_heads_applied", "Heads applied to a text: ok or failed", "ring", "result"
        )
        self.apply_seconds = make.histogram(
            "winnow_heads_apply_seconds",
            "Time to run, on a text, the requested heads that were in memory",
            "ring",
            buckets=FAST,
        )
        self.cached = make.gauge("winnow_heads_warm", "Heads in memory", "ring")
        self.memory = make.gauge("winnow_heads_memory_bytes", "Estimated memory of heads", "ring")
        self.budget = make.gauge("winnow_heads_budget_bytes", "Memory budget of heads", "ring")

    def group(self, name: str) -> "EncoderGroupMetrics":
        """Returns the metrics of one encoder group, by its configured name."""
        return EncoderGroupMetrics(self, name)


class EncoderGroupMetrics:
    """Metrics of the heads in memory, for one encoder group."""

    def __init__(self, metrics: HeadCacheMetrics, group: str) -> None:
        self._metrics, self._group = metrics, group
        create_series(metrics.lookups, group, last_values=("hit", "miss"))
        create_series(metrics.loads, group, last_values=_LOAD_RESULTS)
        create_series(metrics.checks, group, last_values=("ok", "failed"))
        create_series(metrics.applied, group, last_values=("ok", "failed"))
        create_series(metrics.evictions, last_values=(group,))
        for seconds in (metrics.load_seconds, metrics.apply_seconds):
            seconds.labels(group)

    def count_lookup(self, result: str) -> None:
        """Counts a requested head; `result` is hit (in memory) or miss."""
        self._metrics.lookups.labels(self._group, result).inc()

    def count_load(self, result: str) -> None:
        """Counts an attempt to load a head or swap its version, by a result of `_LOAD_RESULTS`."""
        self._metrics.loads.labels(self._group, result).inc()

    def observe_load(self, seconds: float) -> None:
        """Records the duration of a successful load."""
        self._metrics.load_seconds.labels(self._group).observe(seconds)

    def count_evictions(self, heads: int) -> None:
        self._metrics.evictions.labels(self._group).inc(heads)

    def count_check(self, result: str) -> None:
        """Counts a check for a new version; `result` is ok or failed."""
        self._metrics.checks.labels(self._group, result).inc()

    def count_applied(self, result: str) -> None:
        """Counts a head that was applied to a text; `result` is ok or failed."""
        self._metrics.applied.labels(self._group, result).inc()

    def observe_run(self, seconds: float) -> None:
        """Records the time of running the heads of one text."""
        self._metrics.apply_seconds.labels(self._group).observe(seconds)

    def set_memory(self, heads: int, used_bytes: int, budget_bytes: int) -> None:
        """Sets the number of heads in memory, the memory that they take, and its budget."""
        self._metrics.cached.labels(self._group).set(heads)
        self._metrics.memory.labels(self._group).set(used_bytes)
        self._metrics.budget.labels(self._group).set(budget_bytes)


class HeadNodeMetrics:
    """Metrics of a head node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.ready = make.gauge("winnow_head_node_ready", "1 while heads are served, else 0")
        self.texts = make.gauge(
            "winnow_head_node_texts_in_hand", "Texts that heads are being applied to"
        )
        self.refusals = make.counter(
            "winnow_head_node_refusals", "Requests refused because too many texts were in flight"
        )
