"""The cluster over HTTP."""

from http_front import HttpFront
from manual_clock import ManualClock
from tenacious import LONG

from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.status import cluster_operations
from winnow.stateless.status.core import FrontVersion, StatusCore
from winnow.stateless.status.work import FrontWork


def showing() -> StatusCore:
    replica = ReplicaState(
        address="a:1", state=NodeState.OUT, reason="it failed", heard_seconds=0.5
    )
    cluster = ClusterState("index", [ShardState(0, 10, 0, [replica])])
    names = FrontVersion("1.2.3", "default", "print")
    return StatusCore(
        names, FrontWork(), cluster=lambda _: cluster, groups=list, clock=ManualClock()
    )


async def test_the_cluster_is_shown_as_the_call_shows_it_also_before_the_front_is_ready() -> None:
    front = HttpFront()
    front.ready = False
    front.add(cluster_operations(showing(), OperationLimits(LONG)))
    async with front.serving() as client:
        reply = await client.get("/v1/cluster")
    assert reply.status_code == 200
    shown = reply.json()
    assert (shown["indexId"], shown["front"]["version"]) == ("index", "1.2.3")
    (shard,) = shown["shards"]
    assert (shard["shard"], shard["passages"]) == (0, "10")
    assert (shard["replicas"][0]["state"], shard["replicas"][0]["heardSeconds"]) == (
        "STATE_OUT",
        0.5,
    )


async def test_whoever_may_only_ask_is_not_shown_the_cluster() -> None:
    wanted = []

    def gate(scope: str, _headers: object) -> str:
        wanted.append(scope)
        return ""

    front = HttpFront(gate=gate)
    front.add(cluster_operations(showing(), OperationLimits(LONG)))
    async with front.serving() as client:
        await client.get("/v1/cluster")
    assert wanted == ["admin"]
