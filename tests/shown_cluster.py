"""A fake front that reports a cluster of two shards to `winnow top`."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.content_node.metrics import NodeMetrics, ShardMetrics
from winnow.domain.text_reading import ReadingTimings
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics, ReadinessMetrics
from winnow.stateless.reading.metrics import TextPoolMetrics, TextReadingMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.v1 import cluster_pb2_grpc
from winnow.v1.cluster_pb2 import FrontState, GetClusterResponse, ReplicaState, ShardState

SERVING, OUT = ReplicaState.STATE_SERVING, ReplicaState.STATE_OUT
UNREACHABLE = ReplicaState.STATE_UNREACHABLE


def cluster(answered: int = 0, up: float = 60.0) -> GetClusterResponse:
    """Returns a cluster with two shards, an unreachable replica, and a refused node."""
    return GetClusterResponse(
        front=FrontState(
            version="1.2.3",
            bundle_name="default",
            up_seconds=up,
            answers=True,
            feeds=True,
            questions_answered=answered,
            questions_in_hand=3,
            reads_in_hand=24,
        ),
        index_id="an-index",
        shards=[
            ShardState(
                shard=0,
                passages=1_234,
                sequence=17,
                replicas=[
                    replica("a:9000", SERVING, sequence=17, passages=1_234, heard_seconds=0.2),
                    replica("b:9000", OUT, "it was slow", sequence=12, lag=5, heard_seconds=0.4),
                ],
            ),
            ShardState(shard=1, replicas=[replica("c:9000", UNREACHABLE, "refused\x1b[2J")]),
        ],
        strangers=[replica("d:9000", ReplicaState.STATE_REFUSED, "it has another bundle")],
    )


def replica(address: str, state: Any, reason: str = "", **fields: Any) -> ReplicaState:
    return ReplicaState(address=address, state=state, reason=reason, **fields)


def front_metrics(answers: int) -> CollectorRegistry:
    """Returns metrics of a front with this number of answers, of 40 ms each."""
    registry = CollectorRegistry()
    metrics, rpc = FrontMetrics(registry), RpcMetrics(registry)
    ReadinessMetrics(registry).ready.set(1)
    admission = AdmissionMetrics(registry)
    for _ in range(answers):
        rpc.record_call("Answer", "OK", 0.04)
        metrics.stage.labels("read").observe(0.03)
        metrics.coverage.observe(0.5)
        admission.count_result("granted")
    return registry


def reader_metrics(calls: int) -> CollectorRegistry:
    """Returns metrics of a server that only reads texts, with this number of calls of 40 ms."""
    registry = CollectorRegistry()
    FrontMetrics(registry)
    ReadinessMetrics(registry).ready.set(1)
    metrics, rpc, pool = (
        TextReadingMetrics(registry),
        RpcMetrics(registry),
        TextPoolMetrics(registry),
    )
    pool.threads.set(2)
    pool.threads_busy.set(1)
    for _ in range(calls):
        rpc.record_call("RerankTexts", "OK", 0.04)
        metrics.observe(ReadingTimings(queue=0.01))
    return registry


def node_metrics() -> CollectorRegistry:
    """Returns metrics of a node of shard 1 that is not ready."""
    registry = CollectorRegistry()
    ShardMetrics(registry)
    metrics = NodeMetrics(registry)
    metrics.passages.labels("1").set(10)
    metrics.threads.set(4)
    metrics.threads_busy.set(3)
    return registry


class ShowingFront(cluster_pb2_grpc.ClusterServiceServicer):
    """Reports ten more answered questions at each call."""

    def __init__(self) -> None:
        self.looks = 0
        self.away = False
        self.told: dict[str, str] = {}
        """Metadata of the last call."""

    def GetCluster(self, request: Any, context: Any) -> GetClusterResponse:
        self.looks += 1
        self.told = dict(context.invocation_metadata())
        if self.away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "it has gone")
        return cluster(answered=10 * self.looks, up=60.0 + self.looks)


@contextmanager
def showing() -> Iterator[tuple[ShowingFront, str]]:
    """Serves by gRPC; yields the front, and HOST:PORT."""
    server, front = grpc.server(ThreadPoolExecutor(2)), ShowingFront()
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(front, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield front, f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait(LONG)
