"""The files of a built shard that a merged generation has replaced.

The manifest of the built shard says which shard it is, so it stays, and so do the word counts of
the built index. In an index with tenants all other files are removed once a merged generation is
served: they may hold passages of tenants that were deleted.
"""

from pathlib import Path

from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.content_node.states.removing import drop_states
from winnow.errors import UnavailableError
from winnow.files.durable import sync_directory
from winnow.reading.states_kind import KINDS


def remove_built_passages(shard: Path) -> None:
    """Removes the passages of a built shard with tenants, and all that was derived from them.

    A merged generation must have all of them. Open files stay readable. After an interruption the
    next call removes the rest.

    Raises:
        ArtefactError: the manifest is damaged.
        OSError: a file cannot be removed.
        UnavailableError: another process computes precomputed data of these passages.

    """
    manifest = read_shard_manifest(shard)
    if not manifest.has_tenants:
        return
    # the database first: without it the shard counts as emptied
    for name in sorted(manifest.files, key=lambda name: name != manifest.store):
        if name not in remaining_files(manifest):
            (shard / name).unlink(missing_ok=True)
    sync_directory(shard)
    busy = [kind.noun for kind in KINDS if not drop_states(shard, kind)]
    if busy:
        raise UnavailableError(
            f"the {' and '.join(busy)} of {shard} are being computed, so they are removed later"
        )


def is_emptied(shard: Path, manifest: ShardManifest) -> bool:
    """Whether `remove_built_passages` has begun to remove the files of a built shard."""
    return manifest.has_tenants and not (shard / manifest.store).exists()


def remaining_files(manifest: ShardManifest) -> frozenset[str]:
    """Returns the names of the files that an emptied shard still has, besides its manifest."""
    return frozenset((manifest.words.frequencies,) if manifest.words else ())
