"""What the nodes of an index with replicas report while it is copied."""

from dataclasses import replace
from typing import Any

import pytest
from moving_shards import INDEX, shard_info
from tenacious import LATER

from winnow.content_node.copying.index_nodes import IndexNodes
from winnow.domain.catalog import CatalogIndex
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.errors import NotWritableError, UnavailableError

ADDRESSES = {name: f"{name}:9000" for name in ("a", "b", "c")}


class Nodes:
    """The reports of nodes by name. Each wait changes them by the next entry of `later`."""

    def __init__(self, **reports: list[ShardInfo]) -> None:
        self.reports, self.later = reports, list[dict[str, list[ShardInfo]]]()

    async def report(self, node: str) -> NodeReport:
        return NodeReport(tuple(self.reports[node]))

    async def sleep(self, _seconds: float) -> None:
        self.reports |= self.later.pop(0)

    def of_index(self, monkeypatch: pytest.MonkeyPatch) -> IndexNodes:
        index = CatalogIndex(
            index_id=INDEX, shards=1, holders={0: ("a", "b")}, nodes=("a", "b", "c")
        )
        nodes = IndexNodes("docs", index, ADDRESSES, copy="new", sleep=self.sleep)
        monkeypatch.setattr(nodes, "_peers", self)
        return nodes


def replica(**changes: Any) -> list[ShardInfo]:
    """The report of a replica that follows a journal."""
    return [replace(shard_info(0), journaled=True, **changes)]


async def test_all_replicas_must_be_closed_and_the_one_with_most_writes_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node of an older version reports `closed_since`, but still takes writes."""
    nodes = Nodes(
        a=replica(sequence=4, replica_closed_since=7), b=replica(sequence=4, closed_since=7), c=[]
    )
    nodes.later = [{"b": replica(sequence=5, replica_closed_since=7)}]
    shards = await nodes.of_index(monkeypatch).wait_until_closed(7, LATER)
    assert (shards[0].node, shards[0].info.sequence) == ("b", 5)
    assert nodes.later == []


async def test_a_replica_that_moves_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = replica(replica_closed_since=7)
    nodes = Nodes(a=closed, b=closed, c=closed)
    own = nodes.of_index(monkeypatch)
    with pytest.raises(
        UnavailableError, match="node c has not closed shard 0 of docs, which moved"
    ):
        await own.check_settled()
    nodes.later = [{"c": []}]
    await own.wait_until_closed(7, LATER)
    assert nodes.later == []
    await own.check_settled()


async def test_replicas_without_a_journal_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = Nodes(a=[shard_info(0)], b=[shard_info(0)], c=[])
    with pytest.raises(NotWritableError, match="has replicas without a journal"):
        await nodes.of_index(monkeypatch).shards()
