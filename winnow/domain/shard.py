"""What a shard says of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """Which part of which index a shard holds, and what it was encoded with."""

    shard: int
    shards: int
    index_id: str
    passages: int
    dimension: int
    bundle_name: str
    bundle_fingerprint: str
