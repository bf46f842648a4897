"""One shard on disk and in memory: manifest, passages, graph, words."""

from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.shard.stored_segment import StoredSegment, open_shard
from winnow.content_node.shard.view import ShardView, view_of

__all__ = ["ShardManifest", "ShardView", "StoredPassage", "StoredSegment", "open_shard", "view_of"]
