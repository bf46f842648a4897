"""Which node takes the writes of a shard, and when an attempt is repeated."""

from dataclasses import replace
from typing import cast

import pytest
from fakes import shard_info

from winnow.errors import NotWritableError, UnavailableError
from winnow.replicas.policy.retrying import retry_delay
from winnow.shard_writer import ShardWriter
from winnow.stateless.cluster.membership import ClusterView, IndexIdentity
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.feed.targets import UNREAD_JOURNAL, choose_target
from winnow.stateless.feed.writers import OpenWriter, Writers


def test_the_only_node_takes_them_whatever_it_says_of_its_log() -> None:
    """It says better than anybody why it does not."""
    assert choose_target(0, ["a"], {"a": ""}) == "a"
    assert choose_target(0, ["a"], {}) == "a"


LOGS = dict.fromkeys(("a", "b", "left-out"), "journal-1")


@pytest.mark.parametrize(
    ("tried", "preferred", "expected"),
    [
        ([], "", "a"),
        (["a"], "", "b"),
        (["a", "b"], "", "a"),
        (["a", "b", "a"], "", "b"),
        ([], "b", "b"),
        (["b"], "b", "a"),
        (["a"], "a", "b"),
        (["a", "b"], "b", "b"),
        ([], "gone", "a"),
    ],
)
def test_a_replica_that_was_not_tried_comes_first_then_the_one_that_worked(
    tried: list[str], preferred: str, expected: str
) -> None:
    assert choose_target(0, ["b", "a"], LOGS, tried, preferred) == expected


def test_a_replica_that_has_yet_to_follow_gets_no_writes_and_stops_none() -> None:
    logs = {"a": UNREAD_JOURNAL, "b": "journal-1"}
    assert [choose_target(0, ["a", "b"], logs, tried) for tried in ([], ["b"])] == ["b", "b"]


@pytest.mark.parametrize(
    "logs", [{"a": UNREAD_JOURNAL, "b": UNREAD_JOURNAL}, {"a": UNREAD_JOURNAL, "b": "journal-1"}]
)
def test_replicas_that_have_yet_to_follow_are_unavailable(logs: dict[str, str]) -> None:
    """Whether their journal is the same is not known yet, or the one that knows is not used."""
    with pytest.raises(UnavailableError, match="has begun to follow its journal"):
        choose_target(0, ["a"], logs)


@pytest.mark.parametrize("other", ["", "another log"])
def test_a_replica_that_has_yet_to_follow_shares_no_log_with_one_that_never_will(
    other: str,
) -> None:
    with pytest.raises(NotWritableError, match="share no log"):
        choose_target(0, ["a", "b"], {"a": UNREAD_JOURNAL, "b": other})


@pytest.mark.parametrize("other", ["", "another log", "journal-2"])
@pytest.mark.parametrize("used", [["a"], ["a", "b"]])
def test_replicas_that_share_no_log_are_named(other: str, used: list[str]) -> None:
    with pytest.raises(NotWritableError, match=r"shard 0 has 2 replicas \(a, b\)"):
        choose_target(0, used, {"a": "journal-1", "b": other})


def test_a_log_that_was_copied_with_its_directory_is_no_journal() -> None:
    """Each node would go on with its copy, and the two would answer differently for ever."""
    with pytest.raises(NotWritableError, match="share no log"):
        choose_target(0, ["a", "b"], {"a": "log", "b": "log"})


def test_a_shard_without_a_node_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="no node serves shard 3 now"):
        choose_target(3, [], {})


@pytest.mark.parametrize(
    ("attempt", "left", "wanted", "expected"),
    [
        (1, 10.0, 0.0, 0.05),
        (2, 10.0, 0.0, 0.1),
        (5, 10.0, 0.0, 0.8),
        (6, 10.0, 0.0, 1.0),
        (1_000, 10.0, 0.0, 1.0),
        (1, 10.0, 0.7, 0.7),
        (1, 0.05, 0.0, None),
        (1, -1.0, 0.0, None),
        (1, 10.0, 60.0, None),
        (1, 100.0, 5.0, None),
    ],
)
def test_pauses_grow_and_end_where_callers_should_know_or_no_time_is_left(
    attempt: int, left: float, wanted: float, expected: float | None
) -> None:
    assert retry_delay(attempt, left, wanted) == expected


def test_the_writes_of_a_moving_shard_go_to_its_owner_alone() -> None:
    logs = {"old": "log", "new": "log"}
    assert choose_target(0, ["new", "old"], logs, moving=["new"]) == "old"
    assert choose_target(0, ["new", "old"], logs, ["new"], "old", moving=["old"]) == "new"
    with pytest.raises(UnavailableError, match="shard 0 is moving to another node: try again"):
        choose_target(0, ["new", "old"], logs, moving=["new", "old"])


def test_of_two_reported_owners_the_one_that_got_the_shard_last_takes_the_writes() -> None:
    """The reports of two nodes are of different moments."""
    view = ClusterView(IndexIdentity("index", 1, 4), {0: ("new", "old")}, {})
    old = shard_info(shards=1, dimension=4, log_id="log")
    infos = {ReplicaAt("old", 0): old, ReplicaAt("new", 0): replace(old, moves=1)}

    def unopened(*_: object) -> OpenWriter:
        raise AssertionError

    writers = Writers(lambda: view, lambda: infos, unopened)
    assert writers.address(0, ["new"]) == "new"
    infos[ReplicaAt("new", 0)] = replace(old, writes_elsewhere=True)
    assert writers.address(0) == "old"


async def test_no_connection_is_opened_after_the_index_was_closed() -> None:
    """A stream may still write to a dropped index when it is closed."""
    view, opened, closed = (
        ClusterView(IndexIdentity("index", 1, 4), {}, {}),
        list[str](),
        list[str](),
    )

    def open_writer(address: str, *_: object) -> OpenWriter:
        async def close() -> None:
            closed.append(address)

        opened.append(address)
        return OpenWriter(cast("ShardWriter", None), lambda: False, close)

    writers = Writers(lambda: view, dict, open_writer)
    writers.writer("node", 0)
    await writers.close()
    with pytest.raises(UnavailableError, match="not open any more"):
        writers.writer("node", 0)
    assert opened == closed == ["node"]
