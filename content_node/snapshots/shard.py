"""All that a snapshot holds of one shard, at one of its writes."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from content_node.shard.manifest import ShardManifest
from content_node.snapshots.contents import Item, opened_base


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a shard."""

    manifest: ShardManifest
    """Of the shard as it was built."""
    items: tuple[Item, ...]
    sequence: int
    """The last write that is in them."""
    passages: int


@contextlib.contextmanager
def open_contents(directory: Path) -> Iterator[Contents]:
    """The files of the shard in `directory`, which may be served and written to meanwhile.

    Raises:
        ArtefactError: one is missing, or a manifest is damaged.

    """
    manifest, base = opened_base(directory)
    yield Contents(manifest, tuple(base), 0, manifest.passages)
