"""Describes a served or archived shard, and checks that the bundle matches the shard. Pure."""

from typing import Protocol

from winnow.bundle import Bundle
from winnow.content_node.shard.manifest import ShardManifest
from winnow.domain.shard import ShardInfo
from winnow.errors import IdentityError


class DescribedShard(Protocol):
    """What is told about a shard: its view has it, and the stub of an archived shard."""

    @property
    def manifest(self) -> ShardManifest:
        """The manifest of the shard's base."""

    @property
    def passages(self) -> int:
        """Number of passages."""

    @property
    def generation(self) -> str:
        """Names the passages and their rows."""

    @property
    def sequence(self) -> int:
        """Sequence number of the last write."""

    @property
    def log_id(self) -> str:
        """Id of the log; empty before the first write."""

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the metadata fields."""

    @property
    def has_token_vectors(self) -> bool:
        """Whether the shard has token vectors."""


def shard_info(view: DescribedShard, bundle: Bundle) -> ShardInfo:
    """Returns the description of a shard that serves a bundle.

    Raises:
        IdentityError: the shard was encoded by another encoder, or its vectors have another
            dimension.

    """
    manifest, served = view.manifest, bundle.manifest
    if manifest.encoding_fingerprint != served.encoding_fingerprint:
        raise IdentityError(
            f"shard {manifest.shard} was encoded by bundle {manifest.bundle_name} "
            f"({manifest.encoding_fingerprint}), but this node has {served.name} "
            f"({served.encoding_fingerprint}): start the node with the bundle of the shard, or "
            "build the index again"
        )
    if manifest.dimension != served.encoder.dimension:
        # hnswlib does not check it, and would read beyond the vectors
        raise IdentityError(
            f"the manifest of shard {manifest.shard} says vectors of {manifest.dimension} values, "
            f"but bundle {served.name} makes vectors of {served.encoder.dimension}: copy the shard "
            "again, or build the index again"
        )
    return ShardInfo(
        shard=manifest.shard,
        shards=manifest.shards,
        index_id=manifest.index_id,
        passages=view.passages,
        dimension=manifest.dimension,
        bundle_name=served.name,
        bundle_fingerprint=served.fingerprint,
        generation=view.generation,
        index_passages=manifest.index_passages,
        sequence=view.sequence,
        log_id=view.log_id,
        fields=view.field_names,
        tenants=manifest.has_tenants,
        token_vectors=served.token_vectors_fingerprint if view.has_token_vectors else "",
    )
