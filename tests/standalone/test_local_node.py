"""The shards of a process, as the front in it sees them."""

from typing import Any

import pytest
from fakes import joint_retrieval

from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.errors import NotLoadedError
from winnow.standalone.composing.nodes import LocalNode
from winnow.stateless.cluster.membership import IndexIdentity


def test_a_writer_of_a_failed_shard_names_no_file_to_callers() -> None:
    shard = ServedShard(0)
    shard.fail("/data/shard was overwritten")
    load: Any = None
    node = LocalNode(ServedShards([shard], joint=joint_retrieval()), load)
    with pytest.raises(NotLoadedError, match="/data/shard was overwritten") as caught:
        node.open_writer("this process", IndexIdentity("index", 1, 2), 0)
    assert caught.value.public == "a node could not load its data"
