"""Metrics of a head node; those of heads in memory: `winnow.heads.metrics`."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class HeadNodeMetrics:
    """What a head node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.ready = Gauge(
            "winnow_head_node_ready", "1 while heads are served, else 0", registry=registry
        )
        self.texts = Gauge(
            "winnow_head_node_texts_in_hand",
            "Texts that heads are being applied to",
            registry=registry,
        )
        self.refusals = Counter(
            "winnow_head_node_refusals",
            "Texts that were refused because there are too many",
            registry=registry,
        )
