"""Metrics of a head node; those of heads in memory: `winnow.heads.metrics`."""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import MetricFactory


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
