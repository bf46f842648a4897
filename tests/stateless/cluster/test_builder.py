"""The cluster that is served, as nodes come and go."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest
from fakes import ENCODED, FINGERPRINT, FakeSearcher, OneShardNode, reading, shard_info
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import LONG, turn
from virtual_loop import in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.domain.shard import NodeReport
from winnow.errors import DeadlineExceededError, NotLoadedError, UnavailableError, WinnowError
from winnow.replicas.routing import ReplicaPolicies
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import Node, ReplicaAt
from winnow.stateless.metrics import ClusterMetrics, ReplicaMetrics
from winnow.stateless.replicas.replicated import ReplicatedSearcher

READY_TIMEOUT = 60.0


async def closed() -> None:
    pass


class Front:
    """A builder over fake nodes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.nodes: dict[str, Node] = {}
        self.served: list[Cluster] = []
        metrics = ReplicaMetrics(self.registry)
        self.builder = ClusterBuilder(
            FrontEncoding(FINGERPRINT, 2, "bundle"),
            lambda shard: ReplicatedSearcher(
                shard,
                lambda address: self.nodes[address].content.searcher(shard),
                ReplicaPolicies(),
                clock=ManualClock(),
                rng=random.Random(1),
                metrics=metrics,
            ),
            self.served.append,
            metrics=ClusterMetrics(self.registry),
        )

    def add(self, name: str, shard: int | None, shards: int = 2, **changes: Any) -> Node:
        """A node that said what it is, or that has not said anything."""
        node = self.nodes[name] = Node(name, OneShardNode(FakeSearcher([reading(name)])), closed)
        if shard is not None:
            fields = {"index_passages": 20, **changes}
            node.record_reply(NodeReport((shard_info(shard, shards, **fields),)))
        return node

    def update(self) -> None:
        present = {
            ReplicaAt(name, info.shard): info
            for name, node in self.nodes.items()
            if node.error is None
            for info in node.infos
        }
        self.builder.update(present, self.nodes.values())

    async def ask(self, shard: int) -> str:
        searcher = self.served[-1].searchers[shard]
        found = await searcher.retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(LONG))
        return found.hits[0].passage_id

    def gauge(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"winnow_front_{name}", labels)


@pytest.fixture
def front() -> Front:
    return Front()


async def test_a_whole_index_is_served_at_once(front: Front) -> None:
    front.add("a", 1)
    front.update()
    assert not front.served
    front.add("b", 0)
    front.update()
    await asyncio.wait_for(front.builder.wait_until_serving(READY_TIMEOUT), LONG)
    assert [await front.ask(0), await front.ask(1)] == ["b", "a"]
    assert front.gauge("index_passages", shard="1") == 10
    assert front.gauge("replicas", shard="1") == 1


async def test_after_a_while_a_part_is_served_and_names_the_missing_shards(front: Front) -> None:
    front.add("a", 1)
    silent = front.add("b", None)
    silent.record_failure(UnavailableError("b: connection refused"))
    front.update()
    assert not front.served
    await asyncio.wait_for(
        front.builder.wait_until_serving(0), LONG
    )  # though no node comes or goes any more
    assert await front.ask(1) == "a"
    assert front.served[0].shard_infos[0].passages == 10  # what is left of 20
    with pytest.raises(UnavailableError, match=r"shard 0 has no replica: .*b: connection refused"):
        await front.ask(0)


async def test_a_part_of_unknown_size_is_not_served(front: Front) -> None:
    front.add("a", 1, index_passages=0)
    front.update()
    front.builder.accept_partial_index()
    assert not front.served
    front.add("b", 0, index_passages=0)
    front.update()
    await asyncio.wait_for(front.builder.wait_until_serving(0), LONG)


async def test_replicas_come_and_go_without_a_new_cluster(front: Front) -> None:
    front.add("a", 0)
    lost = front.add("b", 1)
    front.update()
    lost.record_failure(UnavailableError("b: connection refused"))
    front.update()
    with pytest.raises(UnavailableError, match="shard 1 has no replica: b: connection refused"):
        await front.ask(1)
    assert front.served[0].shard_infos[1].passages == 10
    front.add("c", 1)
    front.update()
    assert await front.ask(1) == "c"
    assert len(front.served) == 1


async def test_a_shard_that_could_not_be_loaded_is_told_from_one_that_is_gone(
    front: Front,
) -> None:
    front.add("a", 0)
    bad = front.add("b", 1)
    front.update()
    bad.record_failure(NotLoadedError("b: graph.hnsw is damaged"))
    front.update()
    assert front.gauge("not_loaded_nodes") == 1
    with pytest.raises(NotLoadedError, match=r"shard 1 is not loaded: b: graph\.hnsw is damaged"):
        await front.ask(1)


async def test_of_several_missing_shards_none_is_blamed_on_a_node_that_said_nothing(
    front: Front,
) -> None:
    front.add("a", 0, 3)
    front.add("b", None).record_failure(NotLoadedError("b: graph.hnsw is damaged"))
    with capture_logs() as logs:
        front.update()
        await asyncio.wait_for(front.builder.wait_until_serving(0), LONG)
    for shard in (1, 2):
        with pytest.raises(UnavailableError, match="has no replica: no node was found") as caught:
            await front.ask(shard)
        assert not isinstance(caught.value, NotLoadedError)
    told = [entry for entry in logs if entry["event"] == "shard is not loaded"]
    assert [(entry["address"], entry["reason"]) for entry in told] == [
        ("b", "b: graph.hnsw is damaged")
    ]


async def test_missing_shards_are_logged_when_they_change(front: Front) -> None:
    with capture_logs() as logs:
        front.update()
        slow = front.add("a", None, 2)
        front.update()
        slow.record_failure(UnavailableError("a: connection refused"))
        front.update()
        front.add("b", 1)
        front.update()
        slow.record_failure(UnavailableError("a: still loading"))
        front.update()
    waited = [entry["shards"] for entry in logs if entry["event"] == "waiting for shards"]
    assert waited == [[], [0]]


async def test_a_hung_shard_says_that_it_is_late(front: Front) -> None:
    front.add("a", 0)
    hung = front.add("b", 1)
    front.update()
    hung.record_failure(DeadlineExceededError("b: deadline exceeded"))
    front.update()
    with pytest.raises(UnavailableError, match="deadline exceeded"):
        await front.ask(1)


@pytest.mark.parametrize(
    ("error", "answered_by"),
    [
        (UnavailableError("a: the node is leaving"), "a"),
        (UnavailableError("a: connection refused"), "a"),
        (NotLoadedError("a: graph.hnsw is damaged"), "a"),
        (WinnowError("a: internal error"), "a"),
        (DeadlineExceededError("a: deadline exceeded"), "b"),
    ],
)
@in_virtual_time
async def test_only_a_silent_node_is_relieved_of_its_calls(
    front: Front, error: WinnowError, answered_by: str
) -> None:
    """One that refuses may be draining; on one that is dead calls fail by themselves."""
    fake = front.add("a", 0, 1).content.searcher(0)
    assert isinstance(fake, FakeSearcher)
    front.update()
    fake.hangs = True
    asked = asyncio.create_task(front.ask(0))
    await asyncio.wait_for(fake.hanging.wait(), LONG)
    front.add("b", 0, 1)
    front.nodes["a"].record_failure(error)
    front.update()
    await turn()
    fake.go_on.set()
    assert await asyncio.wait_for(asked, LONG) == answered_by


async def test_a_shard_that_is_not_served_any_more_has_no_series(front: Front) -> None:
    front.add("a", 0, 1)
    front.update()
    await front.ask(0)
    before = front.served[0].searchers[0]
    front.nodes.clear()
    front.add("x", 0, 1, index_id="green")
    front.update()
    front.add("a", 0, 1)  # nobody asks it but questions that began with the index before
    await before.retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(LONG))
    assert front.gauge("replica_outstanding", shard="0", replica="a") is None


async def test_a_stranger_is_counted_and_named(front: Front) -> None:
    front.add("a", 0, 1)
    front.update()
    front.add("x", 0, 1, bundle_fingerprint="other")
    front.update()
    assert front.gauge("refused_nodes") == 1
    assert front.gauge("replicas", shard="0") == 1
    front.nodes["a"].record_failure(UnavailableError("a: gone"))
    front.update()
    with pytest.raises(UnavailableError, match="a: gone; x: shard 0 of 1 serves bundle fake"):
        await front.ask(0)


async def test_another_index_is_another_cluster_and_the_old_one_ends_its_questions(
    front: Front,
) -> None:
    front.add("a", 0)
    front.add("b", 1).record_failure(UnavailableError("b: gone"))
    front.add("c", 1)
    front.update()
    front.add("x", 0, index_id="green")
    front.nodes["c"].record_failure(UnavailableError("c: gone"))
    front.update()
    assert len(front.served) == 1
    front.add("y", 1, index_id="green")
    front.update()
    assert len(front.served) == 2
    assert [await front.ask(0), await front.ask(1)] == ["x", "y"]
    found = (
        await front.served[0]
        .searchers[0]
        .retrieve(ENCODED, RetrievalDepth(passages=1), Deadline.after(LONG))
    )
    assert found.hits[0].passage_id == "a"


class Watched(Node):
    """Counts how often somebody asks what is wrong with a node, of all of them together."""

    asked = 0

    @property
    def error(self) -> WinnowError | None:
        Watched.asked += 1
        return self._error

    @error.setter
    def error(self, error: WinnowError | None) -> None:
        self._error = error


def fed(front: Front, shards: int) -> None:
    """A node for each shard, and then one that has taken a write."""
    for shard in range(shards):
        node = front.nodes[f"n{shard}"] = Watched(
            f"n{shard}", OneShardNode(FakeSearcher([])), closed
        )
        info = shard_info(shard, shards, index_passages=20, sequence=1, log_id="log")
        node.record_reply(NodeReport((info,)))
    front.update()
    node.record_reply(NodeReport((replace(info, sequence=2),)))


@pytest.mark.parametrize("shards", [10, 80])
async def test_news_of_a_node_take_as_long_as_there_are_nodes_and_no_longer(
    front: Front, shards: int
) -> None:
    """A fed index has hundreds of them a second, which are taken in on the event loop."""
    fed(front, shards)
    Watched.asked = 0
    front.update()
    assert Watched.asked < 10 * shards


async def test_a_write_to_a_shard_is_told_to_no_other_one(front: Front) -> None:
    told: list[int] = []

    class Told(ReplicatedSearcher):
        def update(self, *said: Any) -> None:
            told.append(self._shard)
            super().update(*said)

    metrics = ReplicaMetrics(CollectorRegistry())
    front.builder._open_shard = lambda shard: Told(
        shard,
        lambda address: front.nodes[address].content.searcher(shard),
        ReplicaPolicies(),
        clock=ManualClock(),
        rng=random.Random(1),
        metrics=metrics,
    )
    fed(front, 5)
    assert told == [0, 1, 2, 3, 4]
    told.clear()
    front.update()
    assert told == [4]
    front.nodes["n0"].record_failure(UnavailableError("n0: gone"))
    front.update()
    front.nodes["n0"].record_failure(UnavailableError("n0: really gone"))
    front.update()
    assert told == [4, 0, 0]
    with pytest.raises(UnavailableError, match="n0: really gone"):
        await front.ask(0)
    front.nodes["n2"].record_failure(DeadlineExceededError("n2: silent"))
    front.update()
    assert told == [4, 0, 0, 2], "whose running calls are given up"
