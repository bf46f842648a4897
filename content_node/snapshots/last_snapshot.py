"""The last snapshot of a shard: a note beside the shard's log, and metrics of the note.

Nothing else depends on the note. A shard without writes has none, nor has a restored shard. A note
that cannot be written or read is ignored.
"""

from collections.abc import Iterator
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import BaseModel, ConfigDict, ValidationError

from winnow.content_node.live.reading import LIVE
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.files.durable import write_durably

_log = structlog.get_logger("content_node")
_NOTE = "snapshot.json"


class LastSnapshot(BaseModel):
    """The last snapshot of a shard."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    taken: float
    """When: seconds since 1970."""
    sequence: int
    """The last write of the shard that is in it."""


def write_last_snapshot(shard: Path, snapshot: Snapshot, sequence: int) -> None:
    """Notes that a snapshot was taken, if the shard was ever written to."""
    if not (shard / LIVE).is_dir():
        return
    last = LastSnapshot(name=snapshot.name, taken=snapshot.time.timestamp(), sequence=sequence)
    try:
        write_durably(_path(shard), last.model_dump_json().encode())
    except OSError as error:
        _log.warning("recording the snapshot time failed", shard=str(shard), reason=str(error))


def last_snapshot(shard: Path) -> LastSnapshot | None:
    """The last snapshot of a shard; None without a readable note."""
    try:
        return LastSnapshot.model_validate_json(_path(shard).read_bytes())
    except (OSError, ValidationError):
        return None


def _path(shard: Path) -> Path:
    return shard / LIVE / _NOTE


class SnapshotMetrics(Collector):
    """Metrics of the last snapshot of a shard; no series without a note."""

    def __init__(self, registry: CollectorRegistry, shard: Path) -> None:
        """Reads the note in the directory of the shard whenever metrics are fetched."""
        self._shard = shard
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present figures."""
        if (last := last_snapshot(self._shard)) is None:
            return
        yield GaugeMetricFamily(
            "winnow_node_snapshot_timestamp_seconds",
            "When the last snapshot of the shard was taken, in seconds since 1970",
            value=last.taken,
        )
        yield GaugeMetricFamily(
            "winnow_node_snapshot_sequence",
            "The last write that the last snapshot of the shard holds",
            value=last.sequence,
        )
