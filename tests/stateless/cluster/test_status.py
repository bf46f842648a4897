"""What people who look after a cluster are shown of it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fakes import ENCODED, FakeSearcher
from heard_nodes import Nodes
from tenacious import happens
from virtual_loop import in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState
from winnow.domain.question import RetrievalDepth
from winnow.domain.shard import NodeReport, ShardFault
from winnow.errors import (
    DeadlineExceededError,
    LeavingError,
    NotLoadedError,
    UnavailableError,
    WinnowError,
)
from winnow.stateless.cluster.status import ClusterReporter


@pytest.fixture
def nodes() -> Nodes:
    made = Nodes()
    made.hear("a", 0, seconds_per_read=0.25, reads_in_hand=3)
    made.hear("b", 1)
    return made


def show(nodes: Nodes) -> ClusterState:
    return ClusterReporter(nodes.builder, nodes.found).report()


def replica(nodes: Nodes, address: str) -> ReplicaState:
    """The one at that address, wherever it is listed."""
    shown = show(nodes)
    listed = [*shown.strangers, *(each for shard in shown.shards for each in shard.replicas)]
    (found,) = (each for each in listed if each.address == address)
    return found


def test_before_a_node_replied_there_are_strangers_only() -> None:
    nodes = Nodes()
    nodes.miss("a", UnavailableError("a: connection refused"))
    assert show(nodes) == ClusterState(
        strangers=(
            ReplicaState(address="a", state=NodeState.UNREACHABLE, reason="a: connection refused"),
        )
    )


def test_every_shard_is_shown_with_the_last_replies_of_its_replicas(nodes: Nodes) -> None:
    nodes.clock.advance(0.5)
    shown = show(nodes)
    assert (shown.index_id, shown.strangers) == ("index", ())
    assert [(each.shard, each.passages) for each in shown.shards] == [(0, 10), (1, 10)]
    assert shown.shards[0].replicas == [
        ReplicaState(
            address="a",
            state=NodeState.SERVING,
            reads_in_hand=3,
            seconds_per_read=0.25,
            passages=10,
            generation="rows",
            heard_seconds=0.5,
        )
    ]


def test_a_shard_without_a_replica_is_shown_as_a_shard(nodes: Nodes) -> None:
    del nodes.found.nodes["b"]
    nodes.hear("a", 0)
    assert [len(each.replicas) for each in show(nodes).shards] == [1, 0]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NotLoadedError("b: a flipped byte"), NodeState.NOT_LOADED),
        (LeavingError("b: the node is leaving"), NodeState.LEAVING),
        (UnavailableError("b: connection refused"), NodeState.UNREACHABLE),
        (DeadlineExceededError("b: no reply"), NodeState.UNREACHABLE),
    ],
)
def test_a_node_that_is_left_out_stays_with_its_shard_and_says_why(
    nodes: Nodes, error: WinnowError, state: NodeState
) -> None:
    nodes.miss("b", error)
    (left_out,) = show(nodes).shards[1].replicas
    assert (left_out.address, left_out.state, left_out.reason) == ("b", state, str(error))


@pytest.mark.parametrize(
    ("is_unreachable", "state"), [(False, NodeState.LOADING), (True, NodeState.UNREACHABLE)]
)
def test_a_node_that_loads_a_shard_is_told_from_a_front_whose_nodes_do_not_reply(
    nodes: Nodes, is_unreachable: bool, state: NodeState
) -> None:
    error = UnavailableError("b: the shard is still loading")
    nodes.hear_report("b", NodeReport(faults=(ShardFault(1, error, is_unreachable),)))
    (replica,) = show(nodes).shards[1].replicas
    assert (replica.address, replica.state, replica.reason) == ("b", state, str(error))


def test_a_node_of_another_index_is_a_stranger_that_was_refused(nodes: Nodes) -> None:
    nodes.hear("c", 1, index="other")
    (stranger,) = show(nodes).strangers
    assert (stranger.address, stranger.state) == ("c", NodeState.REFUSED)
    assert "index other" in stranger.reason


def test_a_replica_with_other_rows_is_refused_beside_its_shard(nodes: Nodes) -> None:
    nodes.hear("c", 1, generation="others")
    refused = replica(nodes, "c")
    assert refused.state is NodeState.REFUSED
    assert "generation others" in refused.reason
    assert len(show(nodes).shards[1].replicas) == 2


def test_lag_and_writes_of_replicas_that_follow_one_log_are_shown() -> None:
    nodes = Nodes()
    nodes.hear("a", 0, log_id="log", sequence=9)
    nodes.hear("b", 0, log_id="log", sequence=4)
    nodes.hear("c", 1)
    assert [(each.sequence, each.lag) for each in show(nodes).shards[0].replicas] == [
        (9, 0),
        (4, 5),
    ]
    assert [each.sequence for each in show(nodes).shards] == [9, 0]
    assert [replica(nodes, each).writable for each in "abc"] == [True, True, False]


@in_virtual_time
async def test_a_replica_that_was_ejected_is_out_and_serves_again_later(nodes: Nodes) -> None:
    nodes.hear("c", 0)
    broken = nodes.found.nodes["a"].content.searcher(0)
    assert isinstance(broken, FakeSearcher)
    broken.fails = UnavailableError("a: gone")
    cluster = nodes.builder.cluster
    assert cluster is not None

    async def ask() -> None:
        await cluster.searchers[0].retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(60))

    for _ in range(50):
        await ask()
    out = replica(nodes, "a")
    assert (out.state, out.reason != "") == (NodeState.OUT, True)
    broken.fails = None
    for _ in range(50):
        nodes.clock.advance(60)
        await ask()
    assert replica(nodes, "a").state is NodeState.SERVING


async def test_calls_in_hand_are_counted_where_they_are(nodes: Nodes) -> None:
    busy = nodes.found.nodes["a"].content.searcher(0)
    assert isinstance(busy, FakeSearcher)
    busy.hangs = True
    cluster = nodes.builder.cluster
    assert cluster is not None
    asking = asyncio.create_task(
        cluster.searchers[0].retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(60))
    )
    await happens(busy.hanging.is_set)
    assert [replica(nodes, each).calls_in_hand for each in "ab"] == [1, 0]
    busy.go_on.set()
    await asking
    assert replica(nodes, "a").calls_in_hand == 0


def test_the_shards_are_gone_through_once_however_many_nodes_there_are(nodes: Nodes) -> None:
    """It is done on the event loop, once a second for everybody who watches."""

    class Counted(dict[int, tuple[str, ...]]):
        times = 0

        def items(self) -> Any:
            self.times += 1
            return super().items()

    for number in range(20):
        nodes.hear(f"b{number}", 1)
    counted = Counted(nodes.builder.view.replicas)
    nodes.builder.view = replace(nodes.builder.view, replicas=counted)
    assert len(show(nodes).shards[1].replicas) == 21
    assert counted.times == 1
