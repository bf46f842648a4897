"""Metrics of what is kept in memory to be used again."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from winnow.telemetry.metrics import counted


class CacheMetrics:
    """How much a cache holds, and how often that helps. Several caches of a kind add up."""

    def __init__(self, registry: CollectorRegistry, name: str, what: str) -> None:
        """`name` begins the names of the metrics; `what` it keeps, in their help."""
        self._looks = Counter(
            name, f"Looks for {what} by result: hit or miss", ("result",), registry=registry
        )
        counted(self._looks, last=("hit", "miss"))
        self._bytes = Gauge(f"{name}_bytes", f"Memory of {what} that are kept", registry=registry)
        self._evictions = Counter(
            f"{name}_evictions", f"Times that {what} left memory for others", registry=registry
        )

    def looked_up(self, result: str) -> None:
        """Counts a look: hit or miss."""
        self._looks.labels(result).inc()

    def changed(self, more: int, evicted: int) -> None:
        """There are `more` bytes than before, and `evicted` entries left for others."""
        self._bytes.inc(more)
        self._evictions.inc(evicted)
