"""The steps of docs/scaling.md with processes: overlapping replicas, and shards that move."""

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import grpc
import pytest
from tenacious import LONG, until

from winnow.cli.local.ports import free_ports
from winnow.client import Answer, Client, PassageFields, Position
from winnow.domain.shard import shard_name
from winnow.domain.write import Outcome
from winnow.v1 import cluster_pb2, cluster_pb2_grpc

pytestmark = pytest.mark.timeout(1_800)  # a dozen processes start, on busy machines in minutes each
SHARDS = 3
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
        process.wait(LONG)


def test_a_shard_moves_to_another_node(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    url = tmp_path / "bucket"
    taken = start("index", "snapshot", indexes[SHARDS], url)
    assert taken.wait(LONG) == 0
    first, second, front = (f"127.0.0.1:{port}" for port in free_ports(3))

    def node(address: str, *own: int) -> "subprocess.Popen[bytes]":
        disk = tmp_path / address
        flags = [flag for shard in own for flag in ("--shard", disk / shard_name(shard, SHARDS))]
        return start("node", *flags, "--pull", url, "--listen", address)

    old = node(first, 0, 1)
    new = node(second, 1, 2)
    start("front", "--shards", first, "--shards", second, "--listen", front)
    until(lambda: replicas(front) == [{first}, {first, second}, {second}])
    with Client(front) as client:
        before = client.ask(QUESTION, timeout=LONG)
        assert before.coverage.complete
        end(new)
        new = node(second, 0, 1, 2)
        until(lambda: replicas(front) == [{first, second}, {first, second}, {second}])
        end(old)
        after = client.ask(QUESTION, timeout=LONG)
        assert after.coverage.complete
        assert after.answers[0].text == before.answers[0].text
        shutil.rmtree(tmp_path / first / shard_name(0, SHARDS))
        start("node", "--shards", tmp_path / first, "--listen", first)
        until(lambda: replicas(front) == [{second}, {first, second}, {second}])


def test_shards_and_their_writes_move_although_both_nodes_are_killed(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    """`bench/moves.py` does the same with many moves, and questions meanwhile."""
    shutil.copytree(indexes[SHARDS], tmp_path / "a")
    assignment, (*nodes, front, feed) = tmp_path / "assignment.json", free_ports(4)
    addresses = dict(zip("ab", (f"127.0.0.1:{port}" for port in nodes), strict=True))
    flags = ("--assignment", assignment, "--address", f"127.0.0.1:{front}")

    def node(name: str) -> "subprocess.Popen[bytes]":
        own = ("--name", name, "--data", tmp_path / name, "--listen", addresses[name])
        return start("node", "--feed", *own, "--assignment", assignment)

    def serve_front() -> None:
        listening = ("--listen", f"127.0.0.1:{front}", "--feed-listen", f"127.0.0.1:{feed}")
        targets = (word for address in addresses.values() for word in ("--shards", address))
        start("front", *targets, *listening)

    running = {name: node(name) for name in addresses}
    serve_front()
    on_a, on_b = {addresses["a"]}, {addresses["b"]}
    until(lambda: replicas(f"127.0.0.1:{front}") == [on_a] * SHARDS)
    with Client(f"127.0.0.1:{feed}") as client:
        passages: list[PassageFields] = [
            {"id": f"id-{n}", "text": f"Number {n} is odd."} for n in range(6)
        ]
        client.put(passages[:3], timeout=LONG)
        assert start("shards", "move", 0, "--to", "b", *flags).wait(LONG) == 0
        for name in "ba":
            running[name].kill()
            running[name].wait(LONG)
            running[name] = node(name)
        until(lambda: replicas(f"127.0.0.1:{front}") == [on_b, on_a, on_a])
        client.put(passages[3:], timeout=LONG)
        assert start("shards", "spread", "--without", "a", "--wait", *flags).wait(LONG) == 0
        again = client.put(passages, timeout=LONG)
    assert {each.outcome for each in again} == {Outcome.UNCHANGED}
    until(lambda: not list((tmp_path / "a").glob("shard-*")))


def test_empty_nodes_share_a_snapshot_and_then_their_number_changes(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    """The Helm chart runs these commands."""
    url, assignment = tmp_path / "bucket", ("--assignment", tmp_path / "assignment.json")
    assert start("index", "snapshot", indexes[SHARDS], url).wait(LONG) == 0
    (*listening, front) = (f"127.0.0.1:{port}" for port in free_ports(4))
    addresses = dict(zip("abc", listening, strict=True))
    targets = [word for address in addresses.values() for word in ("--shards", address)]

    def named(names: str) -> list[str]:
        return [word for name in names for word in ("--node", f"{name}={addresses[name]}")]

    def node(name: str) -> "subprocess.Popen[bytes]":
        own = ("--name", name, "--data", tmp_path / name, "--listen", addresses[name])
        return start("node", *own, *assignment, "--pull", url)

    def init(names: str) -> None:
        flags = (*assignment, "--snapshot", url, "--replicas", 2)
        assert start("shards", "init", *named(names), *flags).wait(LONG) == 0

    def spread(names: str) -> "subprocess.Popen[bytes]":
        flags = (*assignment, "--address", front, "--replicas", 2, "--wait")
        return start("shards", "spread", *(f"--node={name}" for name in names), *flags)

    for name in "ab":
        node(name)
    init("ab")
    first = spread("ab")
    start("front", *targets, "--listen", front)
    assert first.wait(LONG) == 0, "it waits for the front"
    assert replicas(front) == [{addresses["a"], addresses["b"]}] * SHARDS
    init("abc")
    more = spread("abc")
    third = node("c")
    assert more.wait(LONG) == 0, "it waits for the node"
    assert sum(addresses["c"] in each for each in replicas(front)) == 2
    assert spread("ab").wait(LONG) == 0
    assert replicas(front) == [{addresses["a"], addresses["b"]}] * SHARDS
    end(third)
    init("ab")
    with Client(front) as client:
        assert client.ask(QUESTION, timeout=LONG).coverage.complete


def answered(client: Client, after: Sequence[Position]) -> tuple[Answer, ...]:
    """The answers to a question about new passages, read completely."""
    question = "When was Ada Lovelace born?"
    return client.ask(question, timeout=LONG, max_loss=0, after=after).answers


def test_fronts_before_fronts_give_the_same_answers_and_take_writes(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    shutil.copytree(indexes[SHARDS], tmp_path / "index")
    names = ("node-a", "node-b", "middle-a", "middle-b", "top", "feed", "direct", *"xy")
    at = {
        name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)
    }

    def node(name: str, *own: int) -> None:
        shards = (tmp_path / "index" / shard_name(shard, SHARDS) for shard in own)
        flags = [word for shard in shards for word in ("--shard", shard)]
        start("node", *flags, "--feed", "--listen", at[name])

    def front(listen: str, *flags: str) -> "subprocess.Popen[bytes]":
        return start("front", *flags, "--listen", at[listen], "--form-timeout", "1")

    node("node-a", 0, 1)
    node("node-b", 2)
    front("x", "--shards", at["node-a"], "--shards-listen", at["middle-a"])
    second = front("y", "--shards", at["node-b"], "--shards-listen", at["middle-b"])
    middles = ("--fronts", at["middle-a"], "--fronts", at["middle-b"])
    front("top", *middles, "--feed-listen", at["feed"])
    front("direct", "--shards", at["node-a"], "--shards", at["node-b"])
    on_a, on_b = {at["middle-a"]}, {at["middle-b"]}
    until(lambda: replicas(at["top"]) == [on_a, on_a, on_b])
    until(lambda: replicas(at["direct"]) == [{at["node-a"]}] * 2 + [{at["node-b"]}])
    with Client(at["top"]) as top, Client(at["direct"]) as direct, Client(at["feed"]) as feed:
        for question in (QUESTION, "How many hearts has an octopus?", "What is Au?"):
            same = [client.ask(question, timeout=LONG, max_loss=0) for client in (top, direct)]
            assert all(reply.coverage.complete for reply in same)
            assert same[0].answers == same[1].answers
        stored = feed.put(
            [{"id": f"fed-{n}", "text": "Ada Lovelace was born in 1815."} for n in range(6)],
            timeout=LONG,
        )
        positions = [each.position for each in stored if each.position is not None]
        after = list({each.shard: each for each in positions}.values())
        # each front learns the new counts of words by polling, at its own time
        until(lambda: answered(top, after) == answered(direct, after))
        assert answered(top, after)[0].text == "1815"
        end(second)
        until(lambda: replicas(at["top"])[2:] == [set()])
        part = top.ask(QUESTION, timeout=LONG)
        assert not part.coverage.complete
        assert part.answers
    # a line for each question and write, and none for each of their calls to a shard
    methods = re.findall(r'"method": "(\w+)"', (tmp_path / "log").read_text())
    assert set(methods) <= {"Answer", "Put"}


def test_a_shard_is_split_beside_questions_and_writes_through_two_levels_of_fronts(
    indexes: dict[int, Path], tmp_path: Path, start: Start
) -> None:
    shutil.copytree(indexes[SHARDS], tmp_path / "a")
    names = ("node", "middle", "shards", "top", "feed")
    at = {
        name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)
    }
    own = ("--name", "a", "--data", tmp_path / "a", "--listen", at["node"])
    assignment = ("--assignment", tmp_path / "assignment.json")

    def node() -> "subprocess.Popen[bytes]":
        return start("node", "--feed", *own, *assignment)

    running = node()
    start(
        "front", "--shards", at["node"], "--listen", at["middle"], "--shards-listen", at["shards"]
    )
    start("front", "--fronts", at["shards"], "--listen", at["top"], "--feed-listen", at["feed"])
    on_a = {at["node"]}
    until(lambda: replicas(at["top"]) == [{at["shards"]}] * SHARDS)
    passages: list[PassageFields] = [
        {"id": f"id-{n}", "text": f"Number {n} is odd."} for n in range(12)
    ]
    with Client(at["top"]) as asking, Client(at["feed"]) as feeding:
        feeding.put(passages[:6], timeout=LONG)
        before = found(asking)
        split = start("shards", "split", 2, *assignment, "--address", at["middle"], "--wait")
        while is_running(split):
            assert found(asking) == before
        assert split.returncode == 0
        assert replicas(at["middle"]) == [on_a] * (SHARDS + 1)
        feeding.put(passages[6:], timeout=LONG)
        running.kill()
        running.wait(LONG)
        node()
        assert {each.outcome for each in feeding.put(passages, timeout=LONG)} == {Outcome.UNCHANGED}
        until(lambda: replicas(at["top"]) == [{at["shards"]}] * (SHARDS + 1))
        assert found(asking) == before
    until(lambda: not (tmp_path / "a" / shard_name(2, SHARDS)).exists())


def found(client: Client) -> list[tuple[str, str]]:
    """The answers to a question, each with the id of its passage.

    Scores follow the counts of words, which writes change.
    """
    reply = client.ask(QUESTION, timeout=LONG, fresh=True)
    assert reply.coverage.complete, reply.coverage
    return [(each.text, each.passage.id) for each in reply.answers]


def replicas(front: str) -> list[set[str]]:
    """The nodes that serve each shard, as the front sees them; empty before it serves."""
    with grpc.insecure_channel(front) as channel:
        stub = cluster_pb2_grpc.ClusterServiceStub(channel)
        try:
            cluster = stub.GetCluster(cluster_pb2.GetClusterRequest(), timeout=LONG)
        except grpc.RpcError:
            time.sleep(0.2)
            return []
    return [
        {replica.address for replica in shard.replicas if replica.state == SERVING}
        for shard in cluster.shards
    ]


def is_running(process: "subprocess.Popen[bytes]") -> bool:
    """Waits for the end of a process for a moment, so that questions leave it processor time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
    return process.returncode is None


def end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    assert process.wait(LONG) == 0
