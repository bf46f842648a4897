"""The shards of several indexes on one content node."""

from fakes import joint_retrieval

from winnow.content_node.served_indexes import ServedIndexes
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards


def shards_of(index_id: str) -> ServedShards:
    shard = ServedShard(0)
    shard.index_id = index_id
    return ServedShards([shard], joint=joint_retrieval())


def test_a_call_never_reaches_a_shard_of_another_index() -> None:
    """Shards of different indexes have the same numbers."""
    default, named, nothing = shards_of("d"), shards_of("n"), ServedShards(joint=joint_retrieval())
    indexes = ServedIndexes(default, nothing)
    indexes.add("n", named)
    assert indexes.of_index("") is default
    assert indexes.of_index("d") is default
    assert indexes.of_index("n") is named
    assert indexes.of_index("x") is nothing
    indexes.remove("n")
    assert indexes.of_index("n") is nothing
