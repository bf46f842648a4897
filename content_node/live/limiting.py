"""Which writes a node takes, as it is set up."""

from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.stored_segment import StoredSegment

_OFF = "the node takes no writes: start the node with --feed"
_OLD = (
    "the shard is of an older version and takes no writes: `winnow index build --passages INDEX "
    "--out NEW` brings it up to date"
)


def write_limits(settings: NodeSettings, vocabulary: int, base: StoredSegment) -> WriteLimits:
    """The limits of a shard for passages whose tokens are below `vocabulary`."""
    manifest = base.manifest
    refusal = "" if settings.feed else _OFF
    if settings.feed and manifest.words is None:
        refusal = _OLD  # it could not be merged
    return WriteLimits(
        manifest.shard,
        manifest.shards,
        manifest.dimension,
        vocabulary,
        settings.max_unmerged,
        refusal,
    )


def no_direct_writes(log_id: str) -> str:
    """Why a shard that follows a journal takes no other writes, and what to do."""
    return (
        f"the shard follows {log_id}, and its other replicas would lack what is written to this "
        "one alone: start the node with --journal; or, to go on without replicas, make an index "
        "of its own: `winnow index build --passages INDEX --out NEW`"
    )
