"""Takes the snapshot of a new index without passages, from which nodes begin."""

import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_empty_index
from winnow.content_node.indexing.plan import BuildProgress
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.stored_snapshots import FILES, open_snapshots, read_snapshots
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.shard import INDEX_FILE
from winnow.errors import invalid_field
from winnow.quoting import shown
from winnow.storage import Storage


def empty_snapshot(url: str, bundle: Bundle, shards: int, *, tenants: bool = False) -> Snapshot:
    """Writes the snapshot of a new index without passages to a directory or URL.

    Returns the snapshot of an interrupted call if `url` has one. `tenants`: whether the index has
    tenants.

    Raises InvalidRequestError if `url` has other snapshots. Raises UnavailableError if it cannot
    be reached or written, and ArtefactError if the temporary directory cannot be written.
    """
    storage = open_snapshots(url)
    newest = next(iter(read_snapshots(storage)), None)
    wanted = shards, bundle.manifest.encoding_fingerprint, tenants
    if newest is not None and _is_empty(newest) and _identity(storage, newest) == wanted:
        return newest
    if newest is not None:
        raise invalid_field(
            "snapshot",
            f"{shown(url)} has snapshots already: give another directory or URL for the new index",
        )
    with tempfile.TemporaryDirectory() as directory, BuildProgress() as progress:
        index = Path(directory) / "index"
        build_empty_index(index, bundle, shards, progress, tenants=tenants)
        return take_snapshot(index, url, progress, _now)


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)  # by the clock that simulations replace


def _identity(storage: Storage, snapshot: Snapshot) -> tuple[int, str, bool]:
    """Returns the number of shards, the encoder, and whether the index has tenants."""
    entry = snapshot.files.get(INDEX_FILE)
    stored = storage.read(f"{FILES}/{entry.sha256}") if entry is not None else None
    index = json.loads(stored or b"{}")
    return snapshot.shards, index.get("encoding_fingerprint", ""), bool(index.get("tenants"))


def _is_empty(snapshot: Snapshot) -> bool:
    return not any(part.passages or part.sequence for part in snapshot.parts)
