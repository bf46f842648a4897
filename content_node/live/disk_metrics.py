"""Disk metrics of a shard: the size of its log, and the free bytes on its disk."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from winnow.content_node.live.reading import log_path, wal_path


class DiskMetrics(Collector):
    """Reads the disk whenever the metrics are scraped, in the thread of the scrape."""

    def __init__(self, registry: CollectorRegistry, shard: Path) -> None:
        self._shard, self._log = shard, log_path(shard)
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the current values; omits any that cannot be read."""
        yield GaugeMetricFamily(
            "winnow_node_log_bytes",
            "Size of the log on disk, in bytes",
            value=sum(_file_size(path) for path in (self._log, wal_path(self._log))),
        )
        try:
            free = shutil.disk_usage(self._shard).free
        except OSError:
            return
        yield GaugeMetricFamily(
            "winnow_node_disk_free_bytes",
            "Free bytes on the disk of the shard",
            value=free,
        )


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # no log exists before the first write
