"""Takes snapshots of simulated nodes, on the disks of the same machines, and reads them."""

import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from winnow.content_node.indexing.current_shard import read_current_shard
from winnow.content_node.indexing.source_index import replay_unmerged
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.shard import open_shard
from winnow.content_node.snapshots.manifest import Snapshot
from winnow.content_node.snapshots.restoring import restore_snapshot
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.domain.shard import shard_name
from winnow.errors import GenerationGoneError
from winnow.storage.pull import NoProgress

_DIRECTORY = "snapshots"
_EF = 64
"""hnswlib's search width, which opening a shard needs."""


def take(root: Path, shard: int, shards: int) -> Snapshot:
    """Takes a snapshot of a shard of the node whose disk has the root `root`.

    Raises WinnowError if that fails.
    """
    url = str(root / _DIRECTORY)
    return take_snapshot(root / shard_name(shard, shards), url, NoProgress(), _now)


def texts_of(root: Path, shard: int, shards: int, name: str) -> dict[str, str]:
    """Restores a snapshot elsewhere; returns the texts of its passages by id.

    Raises WinnowError if there is no such snapshot, or if it is damaged.
    """
    with TemporaryDirectory() as aside:
        own = shard_name(shard, shards)
        directory = Path(aside, own)
        restore_snapshot(f"{root / _DIRECTORY}/{own}", directory, NoProgress(), name)
        base = open_newest(directory, 0, lambda path: open_shard(path, _EF), feeding=False)
        texts = dict[str, str]()
        for row in range(base.rows):
            with contextlib.suppress(GenerationGoneError):  # a row that a merge emptied
                passage = base.load(row).passage
                texts[passage.id] = passage.text

        def apply(write: LoggedWrite) -> None:
            texts.pop(write.id, None)
            if write.put is not None:
                texts[write.id] = write.put.passage.text

        replay_unmerged(directory, read_current_shard(directory), apply)
        return texts


def _now() -> datetime:
    return datetime.fromtimestamp(time.time(), UTC)  # of the simulation
