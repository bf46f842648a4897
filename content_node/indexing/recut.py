"""An index as the source of another: its passages and their vectors are taken over as they are.

For another number of shards, other graphs, or what an older version did not build yet; encoding
again, which takes by far the longest, is not needed.
"""

from pathlib import Path

from content_node.indexing.verify import identity_faults
from content_node.shard.manifest import read_index_manifest, read_shard_manifest
from winnow.bundle import Manifest
from winnow.domain.layout import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksum import verify


def is_index(source: Path) -> bool:
    """Whether `source` is the directory of an index."""
    return (source / INDEX_FILE).is_file()


def stores(index: Path, bundle: Manifest) -> list[Path]:
    """The verified passages of every shard.

    Raises:
        ArtefactError: a file is missing or damaged, or the index was encoded by another bundle.

    """
    manifest = read_index_manifest(index)
    if manifest.encoding_fingerprint != bundle.encoding_fingerprint:
        raise ArtefactError(
            f"{index} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), not by {bundle.name} "
            f"({bundle.encoding_fingerprint}): name that bundle, or build from the passages"
        )
    found, passages = [], 0
    for shard in range(manifest.shards):
        directory = index / shard_name(shard, manifest.shards)
        own = read_shard_manifest(directory)
        if faults := identity_faults(own, shard, manifest):
            raise ArtefactError(f"{directory} is not of this index: {'; '.join(faults)}")
        entry = own.files[own.store]
        verify(directory / own.store, entry.sha256, entry.bytes)
        found.append(directory / own.store)
        passages += own.passages
    if passages != manifest.passages:
        raise ArtefactError(
            f"the shards of {index} hold {passages} passages, its manifest says {manifest.passages}"
        )
    return found
