"""One shard on disk and in memory: manifest, passages, graph."""

from content_node.shard.manifest import ShardManifest
from content_node.shard.shard import Shard, open_shard
from content_node.shard.store import StoredPassage

__all__ = ["Shard", "ShardManifest", "StoredPassage", "open_shard"]
