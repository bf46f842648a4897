"""Windows cover a passage, all of it, within the room there is."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.reading.model import split_windows


@given(st.integers(0, 2000), st.integers(2, 300), st.data())
def test_windows_cover_everything_and_overlap(tokens: int, room: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, room - 1))
    found = split_windows(tokens, room, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == tokens
    assert all(end - start <= room for start, end in found)
    for (_, end), (start, _) in pairwise(found):
        assert end - start >= overlap
    if tokens > room:
        assert all(end - start == room for start, end in found)


def test_no_answer_shorter_than_the_overlap_is_cut_in_two() -> None:
    found = split_windows(1000, 300, 64)
    for first in range(1000 - 64):
        assert any(start <= first and first + 64 <= end for start, end in found)


def test_an_overlap_that_leaves_no_step_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        split_windows(10, 5, 5)
