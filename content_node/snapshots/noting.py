"""What a shard knows of its snapshots: a note of the last one, beside its log.

For whoever watches the node. Nothing else depends on it: a shard without writes has none, nor has
one that was restored, and a note that cannot be written or read is left out.
"""

from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from winnow.content_node.live.reading import LIVE
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.files.durable import write_durably

_log = structlog.get_logger("content_node")
_NOTE = "snapshot.json"


class Note(BaseModel):
    """The last snapshot of a shard."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    taken: float
    """When: seconds since 1970."""
    sequence: int
    """The last write of the shard that is in it."""


def note(shard: Path, snapshot: Snapshot, sequence: int) -> None:
    """Notes that a snapshot was taken, if the shard was ever written to."""
    if not (shard / LIVE).is_dir():
        return
    noted = Note(name=snapshot.name, taken=snapshot.time.timestamp(), sequence=sequence)
    try:
        write_durably(_path(shard), noted.model_dump_json().encode())
    except OSError as error:
        _log.warning("the shard cannot note its snapshot", shard=str(shard), reason=str(error))


def noted(shard: Path) -> Note | None:
    """The last snapshot of a shard, as far as is known."""
    try:
        return Note.model_validate_json(_path(shard).read_bytes())
    except (OSError, ValidationError):
        return None


def _path(shard: Path) -> Path:
    return shard / LIVE / _NOTE
