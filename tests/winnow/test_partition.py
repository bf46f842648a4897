"""Passages map to the shards of an index, some of which were split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.partition import (
    MAX_SPLITS,
    Partition,
    ancestors_of,
    halves_of,
    holds,
    is_shard_number,
    parent_of,
    root_of,
    shares_passages,
)
from winnow.domain.shard import shard_of

IDS = st.text(max_size=6)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    built = draw(st.integers(1, 5))
    partition = Partition(built, range(built))
    for _ in range(draw(st.integers(0, 8))):
        partition = partition.split(draw(st.sampled_from(partition.shards)))
    return partition


@given(partitions(), IDS)
def test_a_passage_belongs_to_one_shard_and_to_all_that_it_is_a_part_of(
    partition: Partition, passage_id: str
) -> None:
    owner = partition.shard_of(passage_id)
    assert [shard for shard in partition if holds(shard, partition.built, passage_id)] == [owner]
    for shard in ancestors_of(owner, partition.built):
        assert holds(shard, partition.built, passage_id)
    assert root_of(owner, partition.built) == shard_of(passage_id, partition.built)


@given(partitions(), IDS, st.data())
def test_a_split_moves_only_passages_of_the_shard_that_is_split(
    partition: Partition, passage_id: str, data: st.DataObject
) -> None:
    split = data.draw(st.sampled_from(partition.shards))
    before, after = partition.shard_of(passage_id), partition.split(split).shard_of(passage_id)
    if before == split:
        assert after in halves_of(split, partition.built)
    else:
        assert after == before


@given(partitions())
def test_a_half_has_a_number_of_its_own_and_knows_its_parent(partition: Partition) -> None:
    built = partition.built
    numbers = {each for shard in partition for each in (shard, *ancestors_of(shard, built))}
    halves = [half for number in numbers for half in halves_of(number, built)]
    assert len(set(halves)) == len(halves)
    assert min(halves) >= built
    for number in numbers:
        assert {parent_of(half, built) for half in halves_of(number, built)} == {number}


@given(partitions())
def test_a_number_stands_for_its_parts_or_for_the_shard_that_it_is_a_part_of(
    partition: Partition,
) -> None:
    for shard in partition:
        assert partition.parts_of(shard) == [shard]
        first, second = halves_of(shard, partition.built)
        assert partition.parts_of(first) == partition.parts_of(second) == [shard]
        assert partition.split(shard).parts_of(shard) == [first, second]
    assert partition.parts_of(-1) == []
    assert partition.parts_of(10**9) == []


@pytest.mark.parametrize(
    ("shards", "problem"),
    [
        ([0, 2], "lacks shard 1"),
        ([1, 2], "lacks shard 0"),
        ([], "lacks shard 0"),
        ([0, 1, 1, 2], "twice"),
        ([0, 1, 2, 5], "shard 1 and also its part, shard 5"),
        ([0, 2, 5], "lacks a half"),
        ([0, 1, 2, 10**6], "no shard 1000000"),
    ],
)
def test_shards_that_are_no_whole_index_are_refused(shards: list[int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Partition(3, shards)


def test_a_shard_can_be_split_a_limited_number_of_times() -> None:
    partition = Partition(3, range(3))
    for _ in range(MAX_SPLITS):
        partition = partition.split(max(partition))
    with pytest.raises(ValueError, match="no shard"):
        partition.split(max(partition))
    assert is_shard_number(max(partition), 3)


def test_numbers_share_passages_if_one_is_a_part_of_the_other() -> None:
    first, second = halves_of(1, 3)
    assert shares_passages(1, 1, 3)
    assert shares_passages(1, second, 3)
    assert shares_passages(halves_of(first, 3)[0], 1, 3)
    assert not shares_passages(first, second, 3)
    assert not shares_passages(0, first, 3)
