"""One shard on disk and in memory: manifest, passages, graph, words."""

from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.shard.stored_segment import StoredSegment, open_shard
from winnow.content_node.shard.view import ShardView, view_of
from winnow.reading.stored_passage import StoredPassage

__all__ = ["ShardManifest", "ShardView", "StoredPassage", "StoredSegment", "open_shard", "view_of"]
