"""Metrics that every process has.

Registries are injected, so that tests and several nodes in one process do not collide. Labels never
hold anything that a user wrote.
"""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from winnow.telemetry.buckets import SLOW


def counted(counter: Counter, *labels: str, last: Iterable[str]) -> None:
    """Has a counter show 0 for each value of its last label, the others being `labels`.

    A series that begins with 1 has not grown for Prometheus: its first count would alert nobody.
    """
    for value in last:
        counter.labels(*labels, value)


class RpcMetrics:
    """Calls by method and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._latency = Histogram(
            "winnow_request_seconds",
            "Time of a call inside the server, by method and gRPC status; AnswerOfMany: of one "
            "question of a call Answers",
            ("method", "status"),
            buckets=SLOW,
            registry=registry,
        )

    def finished(
        self, method: str, status: str, seconds: float, exemplar: dict[str, str] | None = None
    ) -> None:
        """Counts one call; `exemplar` leads to its trace."""
        self._latency.labels(method, status).observe(seconds, exemplar)


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


class LogMetrics(Collector):
    """How whole the log is."""

    def __init__(self, registry: CollectorRegistry, dropped: Callable[[], int]) -> None:
        """`dropped` is asked whenever somebody looks: whoever drops a line has no time to count."""
        self._dropped = dropped
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The present figures."""
        yield CounterMetricFamily(
            "winnow_log_lines_dropped",
            "Log lines that could not be written: standard error is full, closed or not read",
            value=self._dropped(),
        )
