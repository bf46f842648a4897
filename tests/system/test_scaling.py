"""The steps of docs/scaling.md with processes: overlapping replicas, and a shard that moves."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from held_ports import free_ports
from tenacious import until

from winnow.client import Client
from winnow.domain.shard import shard_name
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

pytestmark = pytest.mark.timeout(300)
SHARDS = 3
SECONDS = 120.0
QUESTION = "Who discovered penicillin?"
SERVING = cluster_pb2.ReplicaState.STATE_SERVING
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command; all processes end after the test."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*words: object) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "winnow", *map(str, words)]
        with (tmp_path / "log").open("ab") as log:
            running.append(subprocess.Popen(command, stderr=log))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait(60)


def test_a_shard_moves_to_another_node(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    url = tmp_path / "bucket"
    taken = start("index", "snapshot", indexes[SHARDS], url)
    assert taken.wait(60) == 0
    first, second, front = (f"127.0.0.1:{port}" for port in free_ports(3))

    def node(address: str, *own: int) -> "subprocess.Popen[bytes]":
        disk = tmp_path / address
        flags = [flag for shard in own for flag in ("--shard", disk / shard_name(shard, SHARDS))]
        return start("node", *flags, "--pull", url, "--listen", address)

    old = node(first, 0, 1)
    new = node(second, 1, 2)
    start("front", "--shards", first, "--shards", second, "--listen", front)
    until(lambda: replicas(front) == [{first}, {first, second}, {second}], SECONDS)
    with Client(front) as client:
        before = client.ask(QUESTION, timeout=60)
        assert before.coverage.complete
        end(new)
        new = node(second, 0, 1, 2)
        until(lambda: replicas(front) == [{first, second}, {first, second}, {second}], SECONDS)
        end(old)
        after = client.ask(QUESTION, timeout=60)
        assert after.coverage.complete
        assert after.answers[0].text == before.answers[0].text
        shutil.rmtree(tmp_path / first / shard_name(0, SHARDS))
        start("node", "--shards", tmp_path / first, "--listen", first)
        until(lambda: replicas(front) == [{second}, {first, second}, {second}], SECONDS)


def replicas(front: str) -> list[set[str]]:
    """The nodes that serve each shard, as the front sees them; empty before it serves."""
    with grpc.insecure_channel(front) as channel:
        stub = cluster_pb2_grpc.ClusterServiceStub(channel)
        try:
            cluster = stub.GetCluster(cluster_pb2.GetClusterRequest(), timeout=5)
        except grpc.RpcError:
            time.sleep(0.2)
            return []
    return [
        {replica.address for replica in shard.replicas if replica.state == SERVING}
        for shard in cluster.shards
    ]


def end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    assert process.wait(60) == 0
