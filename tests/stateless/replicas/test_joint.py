"""Retrieving from the shards of a cluster with one call for each of few nodes."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from fakes import ENCODED, FakeSearcher, reading
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens, turn

from winnow.deadline import Deadline
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import EncodedQuestion, PartialResults, RetrievalDepth, WaitPolicy
from winnow.domain.shard import NodeReport
from winnow.errors import NotLoadedError, UnavailableError, WinnowError
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.replicas.policy.outliers import EjectionState, OutlierSettings
from winnow.replicas.policy.replicas import Replica, ReplicaSettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.searcher import RequestedShard, Retrieved, Searcher
from winnow.stateless.answer.recording import CallRecorder
from winnow.stateless.answer.scatter import ScatterResult, scatter
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.waiting import AdaptiveTimeout
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.replicated import ReplicatedSearcher

GONE = UnavailableError("connection refused")
NEVER_LATE = HedgeSettings(min_samples=10**6)
LATE_AFTER_ONE = HedgeSettings(min_samples=1, min_delay=0.0, budget=1.0, reserve=0)


@dataclass
class FakeNode:
    """A node whose shards can fail alone or together; each names the node in its hit."""

    name: str
    shards: dict[int, FakeSearcher]
    fails: Exception | None = None
    """Raised by every joint call."""
    hangs: bool = False
    """Makes joint calls wait until they are cancelled, or `go_on` is set."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[list[int]] = field(default_factory=list)
    """The shards of each joint call."""
    after: list[int] = field(default_factory=list)
    """The required write of each shard of the last joint call."""

    async def report(self, deadline: Deadline) -> NodeReport:
        raise NotImplementedError

    def searcher(self, shard: int | None) -> Searcher:
        assert shard is not None
        return self.shards[shard]

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> list[Retrieved | Exception]:
        self.calls.append([each.shard for each in shards])
        self.after = [each.after for each in shards]
        await turn()
        if self.fails is not None:
            raise self.fails
        if self.hangs:
            self.hanging.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        results: list[Retrieved | Exception] = []
        for each in shards:
            try:
                results.append(await self.shards[each.shard].retrieve(question, depth, deadline))
            except WinnowError as error:
                results.append(error)
        return results


class Cluster:
    """Nodes with shards, and a front that retrieves from them."""

    def __init__(self, nodes: dict[str, Sequence[int]], hedge: HedgeSettings = NEVER_LATE) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.nodes = {
            name: FakeNode(name, {n: FakeSearcher([reading(f"{name}{n}")]) for n in shards})
            for name, shards in nodes.items()
        }
        outliers = OutlierSettings(consecutive_failures=2, base_ejection_seconds=5.0)
        policies = ReplicaPolicies(ReplicaSettings(outliers=outliers), hedge)
        metrics, rng = ReplicaMetrics(self.registry), random.Random(1)
        loads = NodeCalls(5.0, self.clock, rng)
        self.shards = {
            shard: ReplicatedSearcher(
                shard,
                lambda address, shard=shard: self.nodes[address].searcher(shard),  # type: ignore[misc]
                policies,
                clock=self.clock,
                rng=rng,
                metrics=metrics,
                joint_calls=loads.running,
            )
            for shard in sorted({n for shards in nodes.values() for n in shards})
        }
        self.sequences = {name: dict.fromkeys(shards, 0) for name, shards in nodes.items()}
        self.poll()
        self.joint = JointCalls(
            self.shards, self.nodes.__getitem__, loads, policies=policies, clock=self.clock
        )

    def poll(self) -> None:
        """Tells the front the last write of each replica."""
        for shard, searcher in self.shards.items():
            own = {name: n[shard] for name, n in self.sequences.items() if shard in n}
            searcher.update(sorted(own), sequences=own, log_id="log")

    def __getitem__(self, name: str) -> FakeNode:
        return self.nodes[name]

    async def gather(
        self,
        required: dict[int, int] | None = None,
        seconds: float = 60.0,
        partial: PartialResults = PartialResults.ALLOW,
        recorder: CallRecorder | None = None,
    ) -> ScatterResult[Retrieved]:
        """Retrieves from all shards, within ten seconds of real time."""
        deadline = Deadline.after(seconds, self.clock)
        depth, recorder = RetrievalDepth(passages=1), recorder or CallRecorder()
        with self.joint.plan_retrieval(ENCODED, depth, deadline, required or {}) as retrieval:
            alone = {
                n: self.shards[n].retrieve(ENCODED, RetrievalDepth(passages=1), deadline)
                for n in retrieval.alone
            }
            joint = {
                n: recorder.recording_joint_call(n, send) for n, send in retrieval.calls().items()
            }
            timeout = AdaptiveTimeout(WaitPolicy(), len(self.shards), deadline)
            allow = partial is PartialResults.ALLOW
            return await asyncio.wait_for(scatter(alone, timeout, allow, joint=joint), LONG)

    async def ask(self, required: dict[int, int] | None = None) -> dict[int, str]:
        """The node that answered, by shard."""
        gathered = await self.gather(required)
        assert not gathered.failures
        return {n: own.hits[0].passage_id[0] for n, own in sorted(gathered.results.items())}

    def replica(self, shard: int, name: str) -> Replica:
        return self.shards[shard]._pool.replicas.by_address[name]

    def calls(self) -> dict[str, list[list[int]]]:
        """The joint calls since the last time, by node."""
        found = {name: node.calls[:] for name, node in self.nodes.items() if node.calls}
        for node in self.nodes.values():
            node.calls.clear()
        return found

    def idle(self) -> bool:
        replicas = [r for n in self.shards.values() for r in n._pool.replicas.by_address.values()]
        return all(replica.load == 0 for replica in replicas)


async def test_a_node_is_called_once_for_all_its_shards() -> None:
    cluster = Cluster({"a": range(5), "b": range(5, 8)})
    assert await cluster.ask() == {n: "a" if n < 5 else "b" for n in range(8)}
    assert cluster.calls() == {"a": [[0, 1, 2, 3, 4]], "b": [[5, 6, 7]]}
    assert cluster.idle()


async def test_nodes_with_the_same_shards_get_their_parts_of_the_questions() -> None:
    cluster = Cluster({"a": range(3), "b": range(3)})
    asked = Counter[str]()
    for _ in range(50):
        asked.update(set((await cluster.ask()).values()))
    assert min(asked["a"], asked["b"]) > 10
    assert asked.total() == 50


async def test_a_call_has_no_more_shards_than_a_node_takes() -> None:
    cluster = Cluster({"a": range(100)})
    await cluster.ask()
    assert [len(shards) for shards in cluster.calls()["a"]] == [64, 36]


async def test_a_shard_that_a_node_lacks_is_retried_alone_where_it_is() -> None:
    cluster = Cluster({"a": range(4), "b": [1]})
    cluster["a"].shards[1].fails = NotLoadedError("damaged")
    cluster["b"].fails = GONE  # no call for several shards may go there
    cluster["a"].shards[2].calls = 0
    assert await cluster.ask() == {0: "a", 1: "b", 2: "a", 3: "a"}
    assert cluster.calls() == {"a": [[0, 1, 2, 3]]}
    assert cluster["a"].shards[2].calls == 1
    assert cluster.idle()


async def test_a_shard_that_fails_everywhere_is_the_only_failure() -> None:
    cluster = Cluster({"a": range(3)})
    cluster["a"].shards[1].fails = NotLoadedError("damaged")
    gathered = await cluster.gather()
    assert sorted(gathered.results) == [0, 2]
    assert gathered.failures[1].status is ShardStatus.NOT_LOADED


async def test_each_shard_of_a_failed_call_goes_to_another_replica() -> None:
    cluster = Cluster({"a": range(4), "b": [0, 1], "c": [2, 3]})
    cluster["a"].fails = GONE
    for _ in range(10):
        found = await cluster.ask()
        assert found == {0: "b", 1: "b", 2: "c", 3: "c"}
    assert cluster.idle()


async def test_a_node_that_fails_is_ejected_for_each_shard_and_not_called() -> None:
    cluster = Cluster({"a": range(3), "b": range(3)})
    cluster["a"].fails = GONE
    for _ in range(20):
        await cluster.ask()
    states = [cluster.replica(shard, "a").record.state for shard in range(3)]
    assert states == [EjectionState.EJECTED] * 3
    cluster.calls()
    for _ in range(20):
        await cluster.ask()
    assert "a" not in cluster.calls()


async def test_after_an_ejection_each_shard_probes_the_replica_alone() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)})
    for shard in range(2):
        cluster.replica(shard, "a").record.eject()
    cluster.clock.advance(5)
    assert await cluster.ask() == {0: "a", 1: "a"}
    assert not cluster.calls()
    assert all(cluster.replica(shard, "a").active for shard in range(2))


async def test_a_success_ends_a_row_of_failures() -> None:
    cluster = Cluster({"a": [0]})
    for _ in range(3):
        cluster["a"].fails = GONE
        assert (await cluster.gather()).failures
        cluster["a"].fails = None
        await cluster.ask()
    assert cluster.replica(0, "a").active


async def late(cluster: Cluster, name: str) -> "asyncio.Task[dict[int, str]]":
    """A question whose call to a certain node hangs."""
    cluster[name].hangs = True
    others = [node for node in cluster.nodes if node != name]
    for other in others:  # busier than any, so that it is not chosen
        for _ in range(1000):
            cluster.joint.nodes.record_start(other)
    task = asyncio.create_task(cluster.ask())
    await asyncio.wait_for(cluster[name].hanging.wait(), LONG)
    for other in others:
        for _ in range(1000):
            cluster.joint.nodes.record_end(other, None)
    return task


async def test_only_shards_with_another_replica_are_hedged_when_a_call_is_late() -> None:
    cluster = Cluster({"a": range(3), "b": [1]}, LATE_AFTER_ONE)
    cluster["a"].hangs = True
    task = asyncio.create_task(cluster.ask())
    await asyncio.wait_for(cluster["a"].hanging.wait(), LONG)
    cluster.clock.advance(0.5)  # as long as a node may be silent
    await happens(lambda: cluster["b"].shards[1].calls > 0)
    cluster["a"].go_on.set()
    assert await task == {0: "a", 1: "b", 2: "a"}
    assert cluster["a"].calls == [[0, 1, 2]]
    assert cluster["a"].shards[1].calls == 1
    assert cluster.idle()


async def test_a_hanging_node_is_ejected_once_hedges_have_won() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)}, LATE_AFTER_ONE)
    for _ in range(2):
        task = await late(cluster, "a")
        cluster.clock.advance(0.5)
        assert await task == {0: "b", 1: "b"}
        await asyncio.wait_for(cluster["a"].cancelled.wait(), LONG)
        cluster["a"].hanging.clear()
    states = [cluster.replica(shard, "a").record.state for shard in range(2)]
    assert states == [EjectionState.EJECTED] * 2
    assert cluster.idle()


async def test_calls_to_a_silent_node_are_given_up_and_retried() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)})
    task = await late(cluster, "a")
    cluster.joint.give_up({"a": {0, 1}}, "it no longer replies")
    assert await task == {0: "b", 1: "b"}
    assert cluster.idle()


async def test_a_silent_node_may_still_answer_for_the_shards_that_no_other_node_has() -> None:
    cluster = Cluster({"a": range(3), "b": range(2)})
    task = await late(cluster, "a")
    for shard in range(2):
        del cluster.sequences["a"][shard]
        cluster.joint.give_up({"a": {shard}}, "it no longer replies")
        cluster.poll()
        await happens(lambda shard=shard: cluster["b"].shards[shard].calls > 0)  # type: ignore[misc]
    cluster["a"].go_on.set()
    assert await task == {0: "b", 1: "b", 2: "a"}
    assert cluster["a"].calls == [[0, 1, 2]]
    assert cluster.idle()


async def test_a_call_is_given_up_once_each_of_its_shards_is() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)})
    task = await late(cluster, "a")
    for shard in range(2):
        cluster.joint.give_up({"a": {shard}}, "it no longer replies")
        await turn()
    await asyncio.wait_for(cluster["a"].cancelled.wait(), LONG)
    assert await task == {0: "b", 1: "b"}
    assert cluster.idle()


async def test_a_late_call_is_cancelled_and_its_shards_are_late() -> None:
    cluster = Cluster({"a": range(2), "b": [2]})
    cluster["a"].hangs = True
    gathered = await cluster.gather(seconds=0.0)
    assert gathered.failures.keys() >= {0, 1}
    assert {failure.status for failure in gathered.failures.values()} == {ShardStatus.TIMEOUT}
    await turn()
    assert cluster.idle()


async def test_a_shard_waits_for_a_write_alone() -> None:
    cluster = Cluster({"a": range(3)})
    cluster.sequences["a"] = {0: 4, 1: 4, 2: 4}
    cluster.poll()
    assert await cluster.ask({1: 5, 2: 4}) == dict.fromkeys(range(3), "a")
    assert cluster.calls() == {"a": [[0, 2]]}
    assert cluster["a"].after == [0, 4]


async def test_a_replica_without_a_write_is_not_called_for_it() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)})
    cluster.sequences["b"] = {0: 7, 1: 7}
    cluster.poll()
    for _ in range(10):
        assert await cluster.ask({0: 7}) == {0: "b", 1: "b"}


async def test_calls_are_recorded_for_each_shard() -> None:
    cluster, clock = Cluster({"a": range(2), "b": [1]}), ManualClock()
    cluster["a"].shards[0].fails = NotLoadedError("damaged")
    recorder = CallRecorder(clock=clock)
    await cluster.gather(recorder=recorder)
    told = {call.shard: call.outcome.value for call in recorder.calls()}
    assert told == {0: "failed", 1: "answered"}


@pytest.mark.filterwarnings("error")
async def test_a_question_that_is_cancelled_ends_its_calls() -> None:
    cluster = Cluster({"a": range(2), "b": range(2)})
    task = await late(cluster, "a")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(cluster["a"].cancelled.wait(), LONG)
    await turn()
    assert cluster.idle()
