"""What a local cluster starts, without starting it."""

import contextlib
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, Self

import pytest
from manual_clock import ManualClock

from winnow.cli.local import cluster as local_cluster
from winnow.cli.local.cluster import LocalCluster
from winnow.cli.local.plan import LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.errors import ArtefactError, UnavailableError
from winnow.index_directory import shard_directories
from winnow.v1.shard_pb2 import ListShardsResponse, ShardFault


@dataclass
class RecordingProcesses:
    """Records the processes that would be started."""

    started: dict[str, Sequence[str]] = field(default_factory=dict)
    logs: dict[str, IO[bytes]] = field(default_factory=dict)

    def start(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        self.started[name] = arguments
        if log is not None:
            self.logs[name] = log

    def stop(self) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "index.json").write_text(json.dumps({"shards": 2}), encoding="utf-8")
    return tmp_path


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def recorded(plan: LocalPlan) -> tuple[LocalCluster, RecordingProcesses]:
    cluster, processes = LocalCluster(plan), RecordingProcesses()
    fake: Any = processes
    cluster.processes = fake
    return cluster, processes


@pytest.mark.parametrize(
    "setting", ["listen", "metrics_listen", "http_listen", "first_node_metrics"]
)
def test_nothing_is_started_where_an_address_is_in_use(
    setting: str, index: Path, taken: str
) -> None:
    addresses: dict[str, Any] = {"listen": f"127.0.0.1:{free_ports(1)[0]}", setting: taken}
    cluster, processes = recorded(LocalPlan(index, Path("b"), **addresses))
    with cluster, pytest.raises(UnavailableError, match=f"{taken} is in use"):
        cluster.start()
    assert not processes.started


def test_no_port_is_a_free_one_that_clients_are_told(index: Path) -> None:
    plan = LocalPlan(
        index,
        Path("b"),
        "0.0.0.0:0",
        health_listen="127.0.0.1:0",
        first_node_metrics="127.0.0.1:0",
    )
    cluster, processes = recorded(plan)
    with cluster:
        cluster.start()
    host, _, port = cluster.address.partition(":")
    assert host == "127.0.0.1"
    assert int(port)
    front = processes.started["front"]
    assert front[front.index("--listen") + 1] == f"0.0.0.0:{port}"
    assert not front[front.index("--health-listen") + 1].endswith(":0")
    assert len(set(cluster.node_metrics)) == 2
    assert "127.0.0.1:0" not in cluster.node_metrics


def test_a_log_is_read_without_moving_the_place_where_its_child_writes_next(index: Path) -> None:
    cluster, processes = recorded(LocalPlan(index, Path("b"), f"127.0.0.1:{free_ports(1)[0]}"))
    with cluster:
        cluster.start()
        log = processes.logs["front"].fileno()
        os.write(log, b"line\n" * 7)
        place = os.lseek(log, 10, os.SEEK_SET)
        assert cluster.last_log_lines() == "\n  front: line" * 6
        assert os.lseek(log, 0, os.SEEK_CUR) == place


@pytest.mark.parametrize("shards", ["1e999", "0", "-1", "2.7", "null", '"2"', "[2]", "100000"])
def test_an_index_with_an_impossible_number_of_shards_is_refused(index: Path, shards: str) -> None:
    (index / "index.json").write_text(f'{{"shards": {shards}}}', encoding="utf-8")
    with pytest.raises(ArtefactError, match=r"index\.json is damaged"):
        shard_directories(index)


def test_for_a_shard_the_index_that_it_lies_in_is_named(index: Path) -> None:
    shard = index / "shard-00000-of-00001"
    shard.mkdir(exist_ok=True)
    with pytest.raises(ArtefactError, match=re.escape(f"is a part of an index: use {index}")):
        shard_directories(shard)


@pytest.mark.parametrize("name", ["new", "new.partial"])
def test_an_index_whose_build_was_interrupted_is_not_finished(name: str, tmp_path: Path) -> None:
    (tmp_path / "new.partial").mkdir()
    with pytest.raises(ArtefactError, match=f"{name} is not finished: wait .* run that command"):
        shard_directories(tmp_path / name)


@pytest.mark.parametrize("path", [".", "/"])
def test_a_directory_without_a_name_is_no_index(path: str, tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), pytest.raises(ArtefactError, match="is not an index"):
        shard_directories(Path(path))


@pytest.mark.parametrize("text", ["", "[1]", "[" * 100_000])
def test_an_index_without_a_readable_manifest_is_refused(index: Path, text: str) -> None:
    (index / "index.json").write_text(text, encoding="utf-8")
    with pytest.raises(ArtefactError, match="is damaged"):
        shard_directories(index)


@dataclass
class StartingFront:
    """A front that is not ready until it was asked some times."""

    polls: int

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def available(self) -> bool:
        self.polls -= 1
        return self.polls < 0


@pytest.mark.parametrize(
    ("reply", "waits"),
    [
        (None, "node 0 does not reply yet"),
        (
            ListShardsResponse(faults=[ShardFault(is_loading=True), ShardFault()]),
            "node 0 loads and verifies 1 shard",
        ),
        (ListShardsResponse(), "the front node at 127.0.0.1:"),
    ],
    ids=["it does not reply yet", "a shard is loading", "all shards are loaded"],
)
async def test_a_cluster_is_given_up_only_once_nothing_is_loading_and_says_what_it_waits_for(
    index: Path, monkeypatch: pytest.MonkeyPatch, reply: ListShardsResponse | None, waits: str
) -> None:
    """The files of a large index are verified for minutes."""

    async def list_shards(_: str) -> ListShardsResponse | None:
        return reply

    monkeypatch.setattr(local_cluster, "list_shards", list_shards)
    monkeypatch.setattr(local_cluster, "_READY_SECONDS", -1.0)
    cluster, _ = recorded(LocalPlan(index, Path("b"), "127.0.0.1:0"))
    cluster.nodes = ["127.0.0.1:1"]
    if reply is None or reply.faults:
        said = await said_at_start(cluster, monkeypatch)
    else:
        with pytest.raises(UnavailableError, match="the cluster was not ready after"):
            await said_at_start(cluster, monkeypatch, said := [])
    assert said[0].startswith(f"still starting after 0 s: {waits}")


async def test_one_process_says_now_and_then_that_it_loads_shards(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no limit of time, so nobody would know whether it hangs."""
    cluster, _ = recorded(LocalPlan(index, Path("b"), "127.0.0.1:0", one_process=True))
    expected = f"still starting after 0 s: the server loads and verifies the shards of {index}"
    assert await said_at_start(cluster, monkeypatch) == [expected] * 3
    assert await said_at_start(cluster, monkeypatch, every=60.0) == []


async def said_at_start(
    cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
    said: list[str] | None = None,
    every: float = -1.0,
) -> list[str]:
    """Waits for a front that is ready at the fourth poll; returns the messages."""
    said = [] if said is None else said

    async def check() -> None:
        pass

    monkeypatch.setattr(local_cluster, "AnswerClient", lambda *_, **__: StartingFront(polls=3))
    monkeypatch.setattr(local_cluster, "_REPORT_SECONDS", every)
    monkeypatch.setattr(local_cluster, "_POLL_SECONDS", 0.0)
    monkeypatch.setattr(local_cluster, "time", SimpleNamespace(monotonic=ManualClock()))
    with cluster:
        await cluster.wait_ready(check, said.append)
    return said
