"""Checks that the shards of a node belong to one index, and that none is there twice."""

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from winnow.content_node.archiving.stub import built_manifest
from winnow.content_node.shard.manifest import ShardManifest
from winnow.domain.shard import shard_number_of
from winnow.errors import ArtefactError


class SameIndexCheck:
    """Refuses shards of another index, and second copies of a shard.

    Safe to use from several threads.
    """

    def __init__(self, index_id: str = "") -> None:
        """`index_id` is the id of the index; empty for that of the first shard."""
        self._index_id = index_id
        self._directories: dict[int, Path] = {}
        self._lock = threading.Lock()

    def check(self, manifest: ShardManifest, directory: Path) -> None:
        """Raises ArtefactError if the node may not serve the shard in this directory."""
        named = shard_number_of(directory.name)
        with self._lock:
            index_id = self._index_id = self._index_id or manifest.index_id
            if manifest.index_id != index_id or named not in (None, manifest.shard):
                expected = "a shard" if named is None else f"shard {named}"
                raise ArtefactError(
                    f"{directory} holds shard {manifest.shard} of index {manifest.index_id} "
                    f"instead of {expected} of index {index_id}: copy the right shard again"
                )
            first = self._directories.setdefault(manifest.shard, directory)
        if first != directory:
            raise ArtefactError(
                f"{directory} holds shard {manifest.shard}, which {first} holds already: a node "
                "serves one copy of a shard"
            )

    def forget(self, directory: Path) -> None:
        """Allows another directory to hold the shard that this directory holds."""
        with self._lock:
            self._directories = {
                shard: each for shard, each in self._directories.items() if each != directory
            }


def most_common_index(directories: Sequence[Path]) -> str:
    """Returns the id of the index that most of these shards belong to.

    It is empty if no manifest can be read.

    Of indexes with equally many shards, the first one counts.
    """
    ids = []
    for directory in directories:
        try:
            ids.append(built_manifest(directory).index_id)
        except ArtefactError:
            continue  # it is reported when the shard is loaded
    return next((index_id for index_id, _ in Counter(ids).most_common(1)), "")
