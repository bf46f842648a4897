"""How fast all nodes together read."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.stateless.policy.reading import seconds_per_read


@pytest.mark.parametrize(
    ("shards", "seconds"),
    [
        ([], None),
        ([[]], None),
        ([[0.0], [0.0]], None),
        ([[0.01]], 0.01),
        ([[0.01, 0.01]], 0.005),
        ([[0.03, 0.015]], 0.01),  # 33 and 67 a second
        ([[0.01], [0.01]], 0.005),
        ([[0.01], [0.04]], 0.02),  # the slower one is asked for half of the passages
        ([[0.01], []], 0.01),  # a dead shard is asked for none
        ([[0.01, 0.0]], 0.005),  # a new replica counts like the other one
        ([[0.01], [0.0]], 0.005),
    ],
)
def test_the_slowest_shard_sets_the_pace(
    shards: Sequence[Sequence[float]], seconds: float | None
) -> None:
    got = seconds_per_read(shards)
    assert got == (None if seconds is None else pytest.approx(seconds))


speeds = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=4)


@given(st.lists(speeds, min_size=1, max_size=4), st.floats(0.001, 1.0))
def test_another_replica_never_slows_down(shards: list[list[float]], more: float) -> None:
    before, after = seconds_per_read(shards), seconds_per_read([[*shards[0], more], *shards[1:]])
    assert before is not None
    assert after is not None
    assert after <= before * (1 + 1e-9)


@pytest.mark.parametrize("odd", [math.inf, math.nan, -1.0])
def test_a_pace_that_is_no_pace_is_not_known(odd: float) -> None:
    """A node that misbehaves must not take the front's questions with it."""
    assert seconds_per_read([[odd]]) is None
    assert seconds_per_read([[0.1, odd]]) == seconds_per_read([[0.1, 0.0]])
