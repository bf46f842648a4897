"""Which node takes the writes of a shard, and when an attempt is repeated."""

import pytest

from stateless.feed.targets import target
from stateless.policy.feeding import pause
from winnow.errors import NotWritableError, UnavailableError


def test_the_only_node_takes_them_whatever_it_says_of_its_log() -> None:
    """It says better than anybody why it does not."""
    assert target(0, ["a"], {"a": ""}) == "a"
    assert target(0, ["a"], {}) == "a"


def test_replicas_of_one_journal_are_tried_one_after_the_other() -> None:
    logs = dict.fromkeys(("b", "a", "left-out"), "journal-1")
    assert [target(0, ["b", "a"], logs, attempt) for attempt in range(3)] == ["a", "b", "a"]


@pytest.mark.parametrize("other", ["", "a log of its own", "journal-2"])
@pytest.mark.parametrize("used", [["a"], ["a", "b"]])
def test_replicas_that_share_no_log_are_named(other: str, used: list[str]) -> None:
    with pytest.raises(NotWritableError, match=r"shard 0 has 2 replicas \(a, b\)"):
        target(0, used, {"a": "journal-1", "b": other})


def test_a_log_that_was_copied_with_its_directory_is_no_journal() -> None:
    """Each node would go on with its copy, and the two would answer differently for ever."""
    with pytest.raises(NotWritableError, match="share no log"):
        target(0, ["a", "b"], {"a": "log", "b": "log"})


def test_a_shard_without_a_node_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="no node serves shard 3 now"):
        target(3, [], {})


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
    assert pause(attempt, left, wanted) == expected
