"""What ends is started again or given up, and a cluster goes on as long as there is some of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from manual_clock import ManualClock

from winnow.cli.local.keeping import Keeping
from winnow.cli.local.restarts import MOST, WINDOW, Restarts
from winnow.errors import UnavailableError


@dataclass
class Scripted:
    """A cluster that is as a test says."""

    nodes: list[str] = field(default_factory=lambda: ["a:1", "a:2"])
    gone: dict[str, int] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    full: bool = False
    """Whether the machine has no process to spare."""

    def ended(self) -> Mapping[str, int]:
        return dict(self.gone)

    def again(self, name: str) -> None:
        if self.full:
            raise BlockingIOError(11, "not now")
        self.started.append(name)

    def pid(self, name: str) -> int:
        return 17

    def by_hand(self, name: str) -> str:
        return f"winnow {name}"

    def last_words(self, name: str) -> str:
        return f"\n  {name}: ouch"

    async def not_loaded(self) -> Mapping[str, str]:
        return dict(self.faults)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def cluster() -> Scripted:
    return Scripted()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keeping(cluster: Scripted, said: list[str], clock: ManualClock) -> Keeping:
    return Keeping(cluster, Restarts(clock), said.append)


def test_what_the_machine_has_no_process_for_is_tried_until_it_has(
    keeping: Keeping, cluster: Scripted, said: list[str]
) -> None:
    cluster.gone = {"front": 1, "node 1": -9}
    cluster.full = True
    for _ in range(2 * MOST):
        keeping.look()
    assert cluster.started == []
    cluster.full = False
    keeping.look()
    assert cluster.started == ["front", "node 1"]
    assert said[:2] == [
        "front ended with exit code 1: starting it again",
        "front cannot be started now, it is tried until it can: [Errno 11] not now",
    ]
    assert len(said) == 4


def test_a_node_that_ends_again_and_again_is_given_up_once_and_the_others_are_kept(
    keeping: Keeping, cluster: Scripted, said: list[str], clock: ManualClock
) -> None:
    cluster.gone["node 1"] = 1
    for _ in range(MOST + 3):
        keeping.look()
    clock.advance(WINDOW)
    keeping.look()
    assert cluster.started == ["node 1"] * MOST
    (given_up,) = said[MOST:]
    assert given_up == (
        "node 1 ended with exit code 1\n  node 1: ouch\nthat was 4 times in 60 s: it is given up, "
        "the others serve without it; to bring it back: winnow node 1"
    )
    cluster.gone["node 0"] = -9
    keeping.look()
    assert cluster.started[MOST:] == ["node 0"]


def test_a_front_that_is_given_up_ends_the_cluster(keeping: Keeping, cluster: Scripted) -> None:
    cluster.gone["front"] = 1
    for _ in range(MOST):
        keeping.look()
    with pytest.raises(UnavailableError, match="front ended with exit code 1\n  front: ouch"):
        keeping.look()


def test_a_cluster_without_nodes_ends(keeping: Keeping, cluster: Scripted) -> None:
    cluster.gone.update({"node 0": 1, "node 1": 1})
    for _ in range(MOST):
        keeping.look()
    with pytest.raises(UnavailableError, match="no node is left"):
        keeping.look()


async def test_a_front_that_cannot_start_ends_the_cluster_at_once(
    keeping: Keeping, cluster: Scripted
) -> None:
    cluster.gone.update({"node 0": 1, "front": 1})
    with pytest.raises(UnavailableError, match="front ended with exit code 1"):
        await keeping.look_at_start()
    assert not cluster.started


async def test_a_node_with_wrong_settings_ends_the_cluster_at_once(
    keeping: Keeping, cluster: Scripted
) -> None:
    """They are those of every node, and the same the next time."""
    cluster.gone["node 0"] = 2
    with pytest.raises(UnavailableError, match="node 0 ended with exit code 2"):
        await keeping.look_at_start()
    assert not cluster.started


async def test_a_node_without_its_shard_is_said_once_and_the_others_are_waited_for(
    keeping: Keeping, cluster: Scripted, said: list[str]
) -> None:
    cluster.faults["node 1"] = "graph.hnsw is damaged"
    await keeping.look_at_start()
    await keeping.look_at_start()
    (once,) = said
    assert once == (
        "node 1 could not load its shard: graph.hnsw is damaged\nthe others will serve without it; "
        "put that right, then `kill 17`: it is started again"
    )


async def test_where_no_node_has_a_shard_all_reasons_are_told(
    keeping: Keeping, cluster: Scripted
) -> None:
    cluster.faults.update({"node 0": "this", "node 1": "that"})
    with pytest.raises(UnavailableError, match=r"(?s)shard: this.*shard: that"):
        await keeping.look_at_start()


async def test_a_node_that_was_started_again_may_have_its_shard(
    keeping: Keeping, cluster: Scripted
) -> None:
    cluster.faults["node 0"] = "this"
    await keeping.look_at_start()
    cluster.gone["node 0"] = 0
    keeping.look()
    cluster.faults = {"node 1": "that"}
    cluster.gone.clear()
    await keeping.look_at_start()
    assert cluster.started == ["node 0"]
