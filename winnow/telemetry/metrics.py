"""Metrics that every process has, and the buckets of all histograms.

Registries are injected, so that tests and several nodes in one process do not collide. Labels never
contain text from users.

Buckets are in seconds, except for COUNTS and SHARES. Most reads and questions take 5 to 220 ms. In
this range, each bound is about 1.5 times the previous one (the E6 series of preferred numbers).
Prometheus interpolates quantiles between two bounds, so their error is at most one step. A
histogram has at most 16 bounds, because each bound is a series per method, stage, shard and status.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

_CLOSE = (0.0047, 0.0068, 0.01, 0.015, 0.022, 0.033, 0.047, 0.068, 0.1, 0.15, 0.22)

FAST = (0.00022, 0.001, 0.0022, *_CLOSE, 0.47, 1.0)
SLOW = (0.0022, *_CLOSE, 0.47, 1.0, 2.0, 5.0)
LONG = (0.1, 0.22, 0.47, 1.0, 2.2, 4.7, 10.0, 22.0, 47.0, 100.0, 220.0, 470.0, 1000.0)
COUNTS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
SHARES = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999999)


def create_series(counter: Counter, *labels: str, last_values: Iterable[str]) -> None:
    """Creates series of a counter at 0, one for each value in `last_values` of its last label.

    `labels` are the values of its other labels. Without these series, the first event would create
    a series at 1. Prometheus would see no increase, and alerts would miss the event.
    """
    for value in last_values:
        counter.labels(*labels, value)


class MetricFactory:
    """Creates metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(
        self, name: str, documentation: str, *labels: str, values: Iterable[str] = ()
    ) -> Counter:
        """Creates a counter, with a series at 0 for each of the `values` of its only label."""
        counter = Counter(name, documentation, labels, registry=self._registry)
        create_series(counter, last_values=values)
        return counter

    def gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self._registry)

    def histogram(
        self, name: str, documentation: str, *labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """Creates a histogram; `buckets` are its upper bounds."""
        return Histogram(name, documentation, labels, buckets=buckets, registry=self._registry)


class FunctionCounter(Collector):
    """A counter whose values are read from functions when metrics are scraped.

    For hot paths that must not spend time on a counter, such as the end of a span.
    """

    def __init__(self, name: str, documentation: str, **values: Callable[[], float]) -> None:
        """Takes a function for each value of the label `result`.

        A single function with the name `value` makes a counter without labels.
        """
        self._name, self._documentation, self._values = name, documentation, values

    def collect(self) -> Iterator[CounterMetricFamily]:
        labels = () if "value" in self._values else ("result",)
        family = CounterMetricFamily(self._name, self._documentation, labels=labels)
        for result, value in self._values.items():
            family.add_metric((result,) if labels else (), value())
        yield family


def dropped_lines(dropped: Callable[[], int]) -> FunctionCounter:
    """Returns the counter of dropped log lines."""
    return FunctionCounter(
        "winnow_log_lines_dropped",
        "Log lines that could not be written: standard error is full, closed or not read",
        value=dropped,
    )


def trace_spans(sent: Callable[[], int], dropped: Callable[[], int]) -> FunctionCounter:
    """Returns the counter of spans, by result: sent to the collector, or dropped."""
    return FunctionCounter(
        "winnow_trace_spans",
        "Spans of traces by result: sent, or dropped because the collector is slow or gone",
        sent=sent,
        dropped=dropped,
    )


class RpcMetrics:
    """The latency histogram of calls, by method and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._latency = make.histogram(
            "winnow_request_seconds",
            "Time of a call inside the server, by method and gRPC status; AnswerOfMany is one "
            "question of an Answers call",
            "method",
            "status",
            buckets=SLOW,
        )

    def record_call(
        self, method: str, status: str, seconds: float, exemplar: dict[str, str] | None = None
    ) -> None:
        """Records the duration of a call; `exemplar` links it to its trace."""
        self._latency.labels(method, status).observe(seconds, exemplar)


class BundleMetrics:
    """The metric with the identity of the loaded bundle."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        labels = ("name", "version", "fingerprint")
        self._info = make.gauge("winnow_bundle_info", "The loaded bundle; always 1", *labels)

    def record_loaded(self, name: str, version: str, fingerprint: str) -> None:
        self._info.labels(name, version, fingerprint).set(1)


class CacheMetrics:
    """The size, lookups and evictions of a cache; caches with the same metrics are summed."""

    def __init__(self, registry: CollectorRegistry, name: str, contents: str) -> None:
        """`name`: prefix of the metric names; `contents`: noun for the entries in help texts."""
        make = MetricFactory(registry)
        self._lookups = make.counter(
            name, f"Lookups of {contents}, by result: hit or miss", "result", values=("hit", "miss")
        )
        self._bytes = make.gauge(f"{name}_bytes", f"Memory of cached {contents}")
        self._evictions = make.counter(
            f"{name}_evictions", f"Evictions of {contents} to make room for others"
        )

    def count_lookup(self, result: str) -> None:
        """Counts a lookup: "hit" or "miss"."""
        self._lookups.labels(result).inc()

    def resize(self, added_bytes: int, evicted: int) -> None:
        """Adds `added_bytes` (may be negative) to the size, and counts `evicted` entries."""
        self._bytes.inc(added_bytes)
        self._evictions.inc(evicted)
