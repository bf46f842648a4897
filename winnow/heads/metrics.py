"""Metrics of heads in memory, by encoder group (label `ring`).

A head's id is no label: there are thousands.
"""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import FAST, SLOW, MetricFactory, counted

_LOADS = ("loaded", "replaced", "broken", "unknown", "no_room", "unreachable")


class HeadCacheMetrics:
    """Metrics of heads in memory, in all encoder groups of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.lookups = make.counter(
            "winnow_heads_lookups",
            "Heads asked for, by whether they were in memory: hit or miss",
            "ring",
            "result",
        )
        self.loads = make.counter(
            "winnow_heads_loads",
            "Attempts to load a head or to replace it by another version: loaded, replaced, broken "
            "(or of another encoder), unknown, no_room, or unreachable",
            "ring",
            "result",
        )
        self.load_seconds = make.histogram(
            "winnow_heads_load_seconds",
            "Time until a head that was not in memory could be used",
            "ring",
            buckets=SLOW,
        )
        self.evictions = make.counter(
            "winnow_heads_evictions", "Heads that left memory to make room for others", "ring"
        )
        self.looks = make.counter(
            "winnow_heads_looks",
            "Looks whether a head in memory is still the version to serve: ok or failed",
            "ring",
            "result",
        )
        self.applied = make.counter(
            "winnow_heads_applied", "Heads applied to a text: ok or failed", "ring", "result"
        )
        self.apply_seconds = make.histogram(
            "winnow_heads_apply_seconds",
            "Time to run all the heads of a text that were in memory",
            "ring",
            buckets=FAST,
        )
        self.warm = make.gauge("winnow_heads_warm", "Heads in memory", "ring")
        self.memory = make.gauge(
            "winnow_heads_memory_bytes", "Memory that heads take, by estimate", "ring"
        )
        self.budget = make.gauge("winnow_heads_budget_bytes", "Memory that heads may take", "ring")

    def group(self, name: str) -> "EncoderGroupMetrics":
        """Returns the metrics of one encoder group, by its configured name."""
        return EncoderGroupMetrics(self, name)


class EncoderGroupMetrics:
    """Metrics of heads in memory, in one encoder group."""

    def __init__(self, metrics: HeadCacheMetrics, group: str) -> None:
        self._metrics, self._group = metrics, group
        counted(metrics.lookups, group, last=("hit", "miss"))
        counted(metrics.loads, group, last=_LOADS)
        counted(metrics.looks, group, last=("ok", "failed"))
        counted(metrics.applied, group, last=("ok", "failed"))
        counted(metrics.evictions, last=(group,))
        for seconds in (metrics.load_seconds, metrics.apply_seconds):
            seconds.labels(group)

    def looked_up(self, result: str) -> None:
        """Counts a head that was asked for: hit or miss."""
        self._metrics.lookups.labels(self._group, result).inc()

    def tried(self, result: str) -> None:
        """Counts an attempt to load a head."""
        self._metrics.loads.labels(self._group, result).inc()

    def loaded(self, seconds: float) -> None:
        """Takes the time of a load that somebody waited for."""
        self._metrics.load_seconds.labels(self._group).observe(seconds)

    def evicted(self, heads: int) -> None:
        """Counts heads that left."""
        self._metrics.evictions.labels(self._group).inc(heads)

    def looked(self, result: str) -> None:
        """Counts a look at a head in memory: ok or failed."""
        self._metrics.looks.labels(self._group, result).inc()

    def applied(self, result: str) -> None:
        """Counts a head that was applied: ok or failed."""
        self._metrics.applied.labels(self._group, result).inc()

    def ran(self, seconds: float) -> None:
        """Takes the time of running heads on one text."""
        self._metrics.apply_seconds.labels(self._group).observe(seconds)

    def memory(self, heads: int, taken: int, budget: int) -> None:
        """Says what is in memory."""
        self._metrics.warm.labels(self._group).set(heads)
        self._metrics.memory.labels(self._group).set(taken)
        self._metrics.budget.labels(self._group).set(budget)


class HeadNodeMetrics:
    """What a head node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.ready = make.gauge("winnow_head_node_ready", "1 while heads are served, else 0")
        self.texts = make.gauge(
            "winnow_head_node_texts_in_hand", "Texts that heads are being applied to"
        )
        self.refusals = make.counter(
            "winnow_head_node_refusals", "Texts that were refused because there are too many"
        )
