"""How many pieces of work reach the collector."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector


class TraceMetrics(Collector):
    """Spans that were sent, and that were not."""

    def __init__(
        self, registry: CollectorRegistry, sent: Callable[[], int], dropped: Callable[[], int]
    ) -> None:
        """They are asked whenever somebody looks: whoever ends a span has no time to count."""
        self._figures = {"sent": sent, "dropped": dropped}
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The present figures."""
        family = CounterMetricFamily(
            "winnow_trace_spans",
            "Spans of traces by result: sent, or dropped because the collector is slow or gone",
            labels=("result",),
        )
        for result, figure in self._figures.items():
            family.add_metric((result,), figure())
        yield family
