"""What a node learns from the other nodes of its index."""

from pathlib import Path
from typing import cast

import pytest

from winnow.content_node.assigned.other_nodes import OtherNodes
from winnow.content_node.settings import NodeSettings
from winnow.content_node.transfer.remote import PeerNodes
from winnow.domain.assignment import Assignment
from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError

ASSIGNED = Assignment(
    index_id="i",
    shards=1,
    version=1,
    nodes={"a": "x:1", "b": "x:2"},
    holders={0: ("b",)},
)


class ReplyingNodes:
    """Nodes that all reply as `replier`."""

    def __init__(self, replier: str) -> None:
        self.replier = replier

    async def report(self, _: str) -> NodeReport:
        return NodeReport((), (), self.replier, "x:1")


@pytest.mark.parametrize(("replier", "known"), [("a", {"a"}), ("c", set()), ("b", set())])
async def test_the_reply_of_another_node_at_an_old_address_does_not_count(
    tmp_path: Path, replier: str, known: set[str]
) -> None:
    """The node that ended may have a newer copy of a shard than its snapshot."""
    flags = {"assignment": "x.json", "name": "b", "data": tmp_path, "pull": str(tmp_path / "none")}
    settings = NodeSettings.load(flags, None, {})
    others = OtherNodes(settings, cast("PeerNodes", ReplyingNodes(replier)))
    assert set(await others.reports(ASSIGNED)) == known
    with pytest.raises(WinnowError) as raised:
        await others.copy_shard(ASSIGNED, 0, tmp_path / "shard-00000-of-00001", [])
    assert ("node a does not reply" in str(raised.value)) == (not known)
