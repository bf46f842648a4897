"""Which passages are read at once."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.stateless.policy.reading import first_reads


@pytest.mark.parametrize(
    ("shards", "idle", "needed", "most", "wave"),
    [
        ([0, 0, 0, 0], {0: 2}, 1, 4, 2),  # the second reader would be idle
        ([0, 1, 2, 0], {0: 1, 1: 1, 2: 1}, 1, 4, 3),  # each on a separate machine
        ([0, 1, 2, 0], {0: 1, 1: 1, 2: 1}, 1, 2, 2),  # no more than may be
        ([0, 1, 0, 2], {0: 1, 1: 1, 2: 1}, 1, 4, 2),  # the third would wait for the first
        ([0, 0, 0, 0], {0: 0}, 1, 4, 1),  # all are busy
        ([0, 0, 0, 0], {}, 2, 4, 2),  # nobody said anything
        ([0, 0, 0, 0], {0: 8}, 1, 0, 1),  # never ahead
        ([0, 0, 0, 0], {0: 2}, 4, 2, 4),  # all are needed
        ([0, 0], {0: 8}, 1, 8, 2),  # there are no more
        ([], {0: 8}, 0, 8, 0),
    ],
)
def test_needed_reads_and_speculative_ones_of_idle_readers_are_sent(
    shards: list[int], idle: dict[int, int], needed: int, most: int, wave: int
) -> None:
    assert first_reads(shards, idle, needed, most) == wave


@given(
    st.lists(st.integers(0, 3), max_size=12),
    st.dictionaries(st.integers(0, 3), st.integers(0, 4)),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_speculative_reads_never_wait_and_never_leave_out_needed_ones(
    shards: list[int], idle: dict[int, int], needed: int, most: int
) -> None:
    wave = first_reads(shards, idle, needed, most)
    assert min(needed, len(shards)) <= wave <= max(min(most, len(shards)), min(needed, len(shards)))
    taken = Counter(shards[:wave])
    assert all(taken[shard] <= idle.get(shard, 0) for shard in shards[needed:wave])
