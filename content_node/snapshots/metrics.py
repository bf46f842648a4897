"""Metrics of a shard's snapshots, which other processes take."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from winnow.content_node.snapshots.noting import noted


class SnapshotMetrics(Collector):
    """The last snapshot of a shard; no series where none is known of."""

    def __init__(self, registry: CollectorRegistry, shard: Path) -> None:
        """Reads the note in the directory of the shard whenever somebody looks."""
        self._shard = shard
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present figures."""
        if (note := noted(self._shard)) is None:
            return
        yield GaugeMetricFamily(
            "winnow_node_snapshot_timestamp_seconds",
            "When the last snapshot of the shard was taken, in seconds since 1970",
            value=note.taken,
        )
        yield GaugeMetricFamily(
            "winnow_node_snapshot_sequence",
            "The last write that the last snapshot of the shard holds",
            value=note.sequence,
        )
