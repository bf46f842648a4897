"""Records the last snapshot of a shard in a file beside its log, for metrics.

Only metrics use the file. A shard without writes and a restored shard have no file. A file that
cannot be written or read is ignored.
"""

from collections.abc import Iterator
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, ValidationError

from winnow.content_node.merging.names import LIVE
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.files.durable import write_durably

_log = structlog.get_logger("content_node")
LAST_SNAPSHOT_FILE = "snapshot.json"
"""Name of the file in the directory of the log."""


class LastSnapshot(BaseModel):
    """The record of the last snapshot of a shard."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    taken: float
    """Time of the snapshot, in seconds since 1970."""
    sequence: int
    """The number of the shard's last write that the snapshot has."""


def write_last_snapshot(shard: Path, snapshot: Snapshot, sequence: int) -> None:
    """Records that a snapshot was taken, if the shard was ever written to."""
    if not (shard / LIVE).is_dir():
        return
    last = LastSnapshot(name=snapshot.name, taken=snapshot.time.timestamp(), sequence=sequence)
    try:
        write_durably(_last_snapshot_path(shard), last.model_dump_json().encode())
    except OSError as error:
        _log.warning("recording the snapshot time failed", shard=str(shard), reason=str(error))


def last_snapshot(shard: Path) -> LastSnapshot | None:
    """Reads the record of a shard's last snapshot; returns None without a readable one."""
    try:
        return LastSnapshot.model_validate_json(_last_snapshot_path(shard).read_bytes())
    except (OSError, ValidationError):
        return None


def _last_snapshot_path(shard: Path) -> Path:
    return shard / LIVE / LAST_SNAPSHOT_FILE


class SnapshotMetrics(Collector):
    """Metrics of the last snapshot of a shard; there are none before the first one."""

    def __init__(self, registry: CollectorRegistry, shard: Path) -> None:
        """Registers the metrics, which are read from the shard's directory at each scrape."""
        self._shard = shard
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the current values."""
        if (last := last_snapshot(self._shard)) is None:
            return
        yield GaugeMetricFamily(
            "winnow_node_snapshot_timestamp_seconds",
            "Time of the last snapshot of the shard, in seconds since 1970",
            value=last.taken,
        )
        yield GaugeMetricFamily(
            "winnow_node_snapshot_sequence",
            "Sequence number of the last write in the last snapshot of the shard",
            value=last.sequence,
        )
