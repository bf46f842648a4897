"""Which node takes the writes of a shard, and when an attempt is repeated."""

import pytest

from stateless.feed.targets import target
from stateless.policy.feeding import pause
from winnow.errors import NotWritableError, UnavailableError


def test_the_only_node_takes_them_whatever_it_says_of_its_log() -> None:
    """It says better than anybody why it does not."""
    assert target(0, ["a"], {"a": ""}) == "a"
    assert target(0, ["a"], {}) == "a"


def test_replicas_of_one_log_are_tried_one_after_the_other() -> None:
    logs = {"b": "log", "a": "log", "left-out": "log"}
    assert [target(0, ["b", "a"], logs, attempt) for attempt in range(3)] == ["a", "b", "a"]


@pytest.mark.parametrize("other", ["", "another log"])
@pytest.mark.parametrize("used", [["a"], ["a", "b"]])
def test_replicas_that_share_no_log_are_named(other: str, used: list[str]) -> None:
    with pytest.raises(NotWritableError, match=r"shard 0 has 2 replicas \(a, b\)"):
        target(0, used, {"a": "log", "b": other})


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
    ],
)
def test_pauses_grow_and_end_where_no_time_is_left(
    attempt: int, left: float, wanted: float, expected: float | None
) -> None:
    assert pause(attempt, left, wanted) == expected
