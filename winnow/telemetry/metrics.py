"""Metrics that every process has, and the buckets of all histograms.

Registries are injected, so that tests and several nodes in one process do not collide. Labels never
hold anything that a user wrote.

Buckets are in seconds, except for counts and shares. From 5 to 220 ms, where reads and questions
lie, each bound is about 1.5 times the one before (the E6 series of preferred numbers). Prometheus
interpolates quantiles between two bounds, so an error is at most that step. A histogram has at most
16 bounds, because each bound is a series of every method, stage, shard and status.
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


def counted(counter: Counter, *labels: str, last: Iterable[str]) -> None:
    """Creates a counter's series at 0 for each value in `last` of its last label.

    `labels` are its other labels. Prometheus sees no increase in a series that starts at 1, so its
    first event would not alert.
    """
    for value in last:
        counter.labels(*labels, value)


class MetricFactory:
    """Creates metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(
        self, name: str, documentation: str, *labels: str, values: Iterable[str] = ()
    ) -> Counter:
        """A counter that shows 0 for each of `values`, the values of its only label."""
        counter = Counter(name, documentation, labels, registry=self._registry)
        counted(counter, last=values)
        return counter

    def gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self._registry)

    def histogram(
        self, name: str, documentation: str, *labels: str, buckets: Sequence[float]
    ) -> Histogram:
        """A histogram with the given upper bounds."""
        return Histogram(name, documentation, labels, buckets=buckets, registry=self._registry)


class FunctionCounter(Collector):
    """A counter whose values are read from functions when metrics are fetched.

    For code that must not spend time on a counter, such as the end of a span.
    """

    def __init__(self, name: str, documentation: str, **values: Callable[[], float]) -> None:
        """`values` are functions by the value of the label `result`; `value` alone has no label."""
        self._name, self._documentation, self._values = name, documentation, values

    def collect(self) -> Iterator[CounterMetricFamily]:
        labels = () if "value" in self._values else ("result",)
        family = CounterMetricFamily(self._name, self._documentation, labels=labels)
        for result, value in self._values.items():
            family.add_metric((result,) if labels else (), value())
        yield family


def dropped_lines(dropped: Callable[[], int]) -> FunctionCounter:
    """The counter of log lines that were dropped."""
    return FunctionCounter(
        "winnow_log_lines_dropped",
        "Log lines that could not be written: standard error is full, closed or not read",
        value=dropped,
    )


def trace_spans(sent: Callable[[], int], dropped: Callable[[], int]) -> FunctionCounter:
    """The counter of spans that were sent to the collector, or dropped."""
    return FunctionCounter(
        "winnow_trace_spans",
        "Spans of traces by result: sent, or dropped because the collector is slow or gone",
        sent=sent,
        dropped=dropped,
    )


class RpcMetrics:
    """Calls by method and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._latency = make.histogram(
            "winnow_request_seconds",
            "Time of a call inside the server, by method and gRPC status; AnswerOfMany: of one "
            "question of a call Answers",
            "method",
            "status",
            buckets=SLOW,
        )

    def record_call(
        self, method: str, status: str, seconds: float, exemplar: dict[str, str] | None = None
    ) -> None:
        """Counts one call; `exemplar` leads to its trace."""
        self._latency.labels(method, status).observe(seconds, exemplar)


class BundleMetrics:
    """The bundle that a process has loaded."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        labels = ("name", "version", "fingerprint")
        self._info = make.gauge("winnow_bundle_info", "The loaded bundle; always 1", *labels)

    def loaded(self, name: str, version: str, fingerprint: str) -> None:
        self._info.labels(name, version, fingerprint).set(1)


class CacheMetrics:
    """How much a cache holds, and how often that helps. Several caches of a kind add up."""

    def __init__(self, registry: CollectorRegistry, name: str, what: str) -> None:
        """`name` begins the names of the metrics; `what` it keeps, in their help."""
        make = MetricFactory(registry)
        self._looks = make.counter(
            name, f"Looks for {what} by result: hit or miss", "result", values=("hit", "miss")
        )
        self._bytes = make.gauge(f"{name}_bytes", f"Memory of {what} that are kept")
        self._evictions = make.counter(
            f"{name}_evictions", f"Times that {what} left memory for others"
        )

    def looked_up(self, result: str) -> None:
        """Counts a look: hit or miss."""
        self._looks.labels(result).inc()

    def changed(self, more: int, evicted: int) -> None:
        """There are `more` bytes than before, and `evicted` entries left for others."""
        self._bytes.inc(more)
        self._evictions.inc(evicted)
