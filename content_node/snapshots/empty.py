"""Takes the snapshot of a new index without passages, from which nodes begin."""

import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_empty_index
from winnow.content_node.indexing.plan import BuildProgress
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.stored_snapshots import open_snapshots, read_snapshots
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.errors import invalid_field
from winnow.quoting import shown


def empty_snapshot(url: str, bundle: Bundle, shards: int, *, tenants: bool = False) -> Snapshot:
    """Writes the snapshot of a new index without passages to a directory or URL.

    Returns the snapshot of an interrupted call if `url` has one. `tenants`: whether the index has
    tenants.

    Raises InvalidRequestError if `url` has other snapshots. Raises UnavailableError if it cannot
    be reached or written, and ArtefactError if the temporary directory cannot be written.
    """
    newest = next(iter(read_snapshots(open_snapshots(url))), None)
    if newest is not None and newest.shards == shards and _is_empty(newest):
        return newest
    if newest is not None:
        raise invalid_field(
            "snapshot",
            f"{shown(url)} has snapshots already: give another directory or URL for the new index",
        )
    with tempfile.TemporaryDirectory() as directory, BuildProgress() as progress:
        index = Path(directory) / "index"
        build_empty_index(index, bundle, shards, progress, tenants=tenants)
        return take_snapshot(index, url, progress, partial(datetime.now, UTC))


def _is_empty(snapshot: Snapshot) -> bool:
    return not any(part.passages or part.sequence for part in snapshot.parts)
