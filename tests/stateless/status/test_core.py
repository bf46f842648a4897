"""What a front shows of itself, over real gRPC."""

from dataclasses import dataclass

import grpc
from listening import listening, new_server
from manual_clock import ManualClock
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.convert import cluster as convert
from winnow.domain.cluster_state import ClusterState, NodeState, ReplicaState, ShardState
from winnow.domain.prediction import EncoderGroupInfo, HeadInMemory
from winnow.stateless.status.core import FrontVersion, StatusCore
from winnow.stateless.status.servicer import SERVICE, ClusterServicer
from winnow.stateless.status.work import FrontWork
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

NAMES = FrontVersion("1.2.3", "default", "print")


@dataclass
class Busy:
    """All that a front may have in hand."""

    answered_questions: int = 7
    ready: bool = True
    refused_questions: int = 2
    in_flight: int = 3
    reads_in_flight: int = 30


def core(
    work: FrontWork, cluster: ClusterState | None = None, *groups: EncoderGroupInfo
) -> tuple[StatusCore, ManualClock]:
    clock, shown = ManualClock(), cluster or ClusterState()
    return StatusCore(
        NAMES, work, cluster=lambda _: shown, groups=lambda: groups, clock=clock
    ), clock


async def shown(made: StatusCore) -> cluster_pb2.GetClusterResponse:
    server = new_server(SERVICE)
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(ClusterServicer(made), server.grpc)
    async with listening(server) as address, grpc.aio.insecure_channel(address) as channel:
        stub = cluster_pb2_grpc.ClusterServiceStub(channel)
        return await stub.GetCluster(cluster_pb2.GetClusterRequest(), timeout=LONG)


async def test_everything_that_is_known_arrives() -> None:
    replica = ReplicaState(
        address="a:1",
        state=NodeState.OUT,
        reason="it failed",
        calls_in_hand=1,
        reads_in_hand=2,
        seconds_per_read=0.5,
        sequence=9,
        lag=4,
        passages=10,
        generation="rows",
        writable=True,
        heard_seconds=0.25,
    )
    cluster = ClusterState("index", [ShardState(0, 10, 13, [replica])], [
        ReplicaState(address="b:1", state=NodeState.UNREACHABLE, reason="b:1: connection refused")
    ])  # fmt: skip
    group = EncoderGroupInfo("en", "states", 100, (HeadInMemory("intent", 2, 50, pinned=True),))
    work = FrontWork(
        answering=Busy(),
        questions=Busy(),
        texts=Busy(in_flight=4),
        passages=Busy(in_flight=5),
        windows=Busy(in_flight=6),
        seconds_per_read=lambda: 0.125,
    )
    made, clock = core(work, cluster, group)
    clock.advance(60)
    reply = await shown(made)
    assert reply == cluster_pb2.GetClusterResponse(
        front=cluster_pb2.FrontState(
            version="1.2.3",
            bundle_name="default",
            bundle_fingerprint="print",
            up_seconds=60,
            answers=True,
            feeds=True,
            questions_answered=7,
            questions_refused=2,
            questions_in_hand=3,
            reads_in_hand=30,
            texts_in_hand=4,
            passages_in_hand=5,
            seconds_per_read=0.125,
            windows_in_hand=6,
        ),
        index_id="index",
        shards=[
            cluster_pb2.ShardState(
                shard=0,
                passages=10,
                sequence=13,
                replicas=[
                    cluster_pb2.ReplicaState(
                        address="a:1",
                        state=cluster_pb2.ReplicaState.STATE_OUT,
                        reason="it failed",
                        calls_in_hand=1,
                        reads_in_hand=2,
                        seconds_per_read=0.5,
                        sequence=9,
                        lag=4,
                        passages=10,
                        generation="rows",
                        writable=True,
                        heard_seconds=0.25,
                    )
                ],
            )
        ],
        strangers=[
            cluster_pb2.ReplicaState(
                address="b:1",
                state=cluster_pb2.ReplicaState.STATE_UNREACHABLE,
                reason="b:1: connection refused",
            )
        ],
        rings=reply.rings,
    )
    assert [(each.name, len(each.warm)) for each in reply.rings] == [("en", 1)]
    assert not reply.strangers[0].HasField("heard_seconds")


async def test_a_look_is_counted_and_not_logged() -> None:
    """A page that is open looks every two seconds."""
    made, _ = core(FrontWork())
    with capture_logs() as logged:
        await shown(made)
    assert not [line for line in logged if line["event"] == "call"]


async def test_a_front_without_index_and_reader_takes_no_passages() -> None:
    made, _ = core(FrontWork())
    front = (await shown(made)).front
    assert not front.HasField("answers")
    assert not front.HasField("windows_in_hand")
    assert (front.HasField("feeds"), front.feeds) == (True, False)


async def test_a_front_that_waits_for_shards_does_not_answer_yet() -> None:
    made, _ = core(FrontWork(answering=Busy(ready=False), questions=Busy()))
    front = (await shown(made)).front
    assert (front.HasField("answers"), front.answers) == (True, False)


def test_every_state_of_a_node_has_a_name_in_the_contract() -> None:
    told = {cluster_pb2.ReplicaState.State.Name(each) for each in convert._STATES.values()}
    assert told == {f"STATE_{state.name}" for state in NodeState}
