"""How an index is laid out: which shard a passage belongs to, and where that shard lies.

Front nodes, content nodes and tools must agree on this, so it stands in one place. Pure.
"""

import hashlib

INDEX_FILE = "index.json"
"""The manifest of an index, in its directory."""
MOST_SHARDS = 4_096
"""Shards that an index may be cut into."""


def shard_of(passage_id: str, shards: int) -> int:
    """The shard that a passage belongs to: by its id alone, so that updates find it again."""
    digest = hashlib.blake2b(passage_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shards


def shard_name(shard: int, shards: int) -> str:
    """The directory of a shard within its index."""
    return f"shard-{shard:05d}-of-{shards:05d}"
