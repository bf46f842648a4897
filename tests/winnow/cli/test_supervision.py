"""Processes that end are restarted or given up, and the rest of a cluster serves on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest
from manual_clock import ManualClock

from winnow.cli.local.cluster import LoadFailure, LocalCluster
from winnow.cli.local.supervision import MAX_RESTARTS, WINDOW, ClusterSupervisor, RestartLimit
from winnow.errors import UnavailableError


@dataclass
class ScriptedCluster:
    """A cluster, and its processes, in the state that a test sets."""

    nodes: list[str] = field(default_factory=lambda: ["a:1", "a:2"])
    gone: dict[str, int] = field(default_factory=dict)
    failures: dict[str, LoadFailure] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    full: bool = False
    """Whether the machine has no process to spare."""

    @property
    def processes(self) -> "ScriptedCluster":
        return self

    def exit_codes(self) -> Mapping[str, int]:
        return dict(self.gone)

    def restart(self, name: str) -> None:
        if self.full:
            raise BlockingIOError(11, "not now")
        self.started.append(name)

    def pid(self, name: str) -> int:
        return 17

    def command(self, name: str) -> str:
        return f"winnow {name}"

    def last_log_lines(self, name: str) -> str:
        return f"\n  {name}: ouch"

    async def load_failures(self) -> Mapping[str, LoadFailure]:
        return dict(self.failures)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def supervisor(cluster: ScriptedCluster, said: list[str], clock: ManualClock) -> ClusterSupervisor:
    return ClusterSupervisor(cast("LocalCluster", cluster), RestartLimit(clock), said.append)


def test_a_start_that_failed_for_lack_of_processes_is_retried(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster, said: list[str]
) -> None:
    cluster.gone = {"front": 1, "node 1": -9}
    cluster.full = True
    for _ in range(2 * MAX_RESTARTS):
        supervisor.restart_ended_processes()
    assert cluster.started == []
    cluster.full = False
    supervisor.restart_ended_processes()
    assert cluster.started == ["front", "node 1"]
    assert said[:2] == [
        "front ended with exit code 1: starting it again",
        "front cannot be started now ([Errno 11] not now): trying again",
    ]
    assert len(said) == 4


def test_a_node_that_ends_again_and_again_is_given_up_once_and_the_others_are_kept(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster, said: list[str], clock: ManualClock
) -> None:
    cluster.gone["node 1"] = 1
    for _ in range(MAX_RESTARTS + 3):
        supervisor.restart_ended_processes()
    clock.advance(WINDOW)
    supervisor.restart_ended_processes()
    assert cluster.started == ["node 1"] * MAX_RESTARTS
    (given_up,) = said[MAX_RESTARTS:]
    assert given_up == (
        "node 1 ended with exit code 1\n  node 1: ouch\nit ended 4 times in 60 s, and is given up; "
        "the other nodes still serve; to start it, run: winnow node 1"
    )
    cluster.gone["node 0"] = -9
    supervisor.restart_ended_processes()
    assert cluster.started[MAX_RESTARTS:] == ["node 0"]


def test_a_front_that_is_given_up_ends_the_cluster(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    cluster.gone["front"] = 1
    for _ in range(MAX_RESTARTS):
        supervisor.restart_ended_processes()
    with pytest.raises(UnavailableError, match="front ended with exit code 1\n  front: ouch"):
        supervisor.restart_ended_processes()


def test_a_cluster_without_nodes_ends(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    cluster.gone.update({"node 0": 1, "node 1": 1})
    for _ in range(MAX_RESTARTS):
        supervisor.restart_ended_processes()
    with pytest.raises(UnavailableError, match="no content node can serve a shard"):
        supervisor.restart_ended_processes()


async def test_a_front_that_cannot_start_ends_the_cluster_at_once(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    cluster.gone.update({"node 0": 1, "front": 1})
    with pytest.raises(UnavailableError, match="front ended with exit code 1"):
        await supervisor.check_at_start()
    assert not cluster.started


async def test_a_front_that_a_signal_ends_at_the_start_is_started_again(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    """Such as one that the kernel kills for its memory."""
    cluster.gone["front"] = -9
    await supervisor.check_at_start()
    assert cluster.started == ["front"]


async def test_a_node_with_wrong_settings_ends_the_cluster_at_once(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    """Every node has the same settings, and would end again."""
    cluster.gone["node 0"] = 2
    with pytest.raises(UnavailableError, match="node 0 ended with exit code 2"):
        await supervisor.check_at_start()
    assert not cluster.started


async def test_a_node_without_its_shard_is_said_once_and_the_others_are_waited_for(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster, said: list[str]
) -> None:
    cluster.failures["node 1"] = LoadFailure("graph.hnsw is damaged")
    await supervisor.check_at_start()
    await supervisor.check_at_start()
    (once,) = said
    assert once == (
        "node 1 could not load its shard: graph.hnsw is damaged\nthe other nodes serve meanwhile; "
        "repair the shard, then run `kill 17` to restart the node"
    )


async def test_a_cluster_without_loaded_shards_names_every_reason(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    cluster.failures.update({"node 0": LoadFailure("this"), "node 1": LoadFailure("that")})
    with pytest.raises(UnavailableError, match=r"(?s)shard: this.*shard: that"):
        await supervisor.check_at_start()


async def test_nodes_that_each_lack_one_shard_of_several_serve_the_others(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster, said: list[str]
) -> None:
    for name in ("node 0", "node 1"):
        cluster.failures[name] = LoadFailure("graph.hnsw is damaged", of_all=False)
    await supervisor.check_at_start()
    assert [line.partition("\n")[0] for line in said] == [
        "node 0 could not load a shard: graph.hnsw is damaged",
        "node 1 could not load a shard: graph.hnsw is damaged",
    ]
    cluster.failures = dict.fromkeys(cluster.failures, LoadFailure("graph.hnsw is damaged"))
    with pytest.raises(UnavailableError, match="no content node can serve a shard"):
        await supervisor.check_at_start()


async def test_a_node_that_was_started_again_may_have_its_shard(
    supervisor: ClusterSupervisor, cluster: ScriptedCluster
) -> None:
    cluster.failures["node 0"] = LoadFailure("this")
    await supervisor.check_at_start()
    cluster.gone["node 0"] = 0
    supervisor.restart_ended_processes()
    cluster.failures = {"node 1": LoadFailure("that")}
    cluster.gone.clear()
    await supervisor.check_at_start()
    assert cluster.started == ["node 0"]


def test_a_process_is_started_again_a_few_times_in_a_while() -> None:
    clock = ManualClock()
    restarts = RestartLimit(clock)
    assert [restarts.allow("node 0") for _ in range(MAX_RESTARTS + 1)] == [True] * MAX_RESTARTS + [
        False
    ]
    assert restarts.allow("node 1")
    clock.advance(WINDOW)
    assert restarts.allow("node 0")


def test_a_refused_restart_is_not_counted() -> None:
    clock = ManualClock()
    restarts = RestartLimit(clock)
    for _ in range(MAX_RESTARTS):
        restarts.allow("front")
        clock.advance(WINDOW / 4)
    assert not restarts.allow("front")
    clock.advance(WINDOW / 4)
    assert restarts.allow("front")
