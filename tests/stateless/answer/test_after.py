"""The writes that an answer must know of."""

import pytest

from winnow.domain.partition import Partition
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError
from winnow.rpc.status import rich_status
from winnow.stateless.answer.validation import current_positions

PARTITION = Partition(3, range(3))


def test_a_write_of_a_shard_that_was_split_is_required_of_its_parts() -> None:
    split = PARTITION.split(1)
    first, second = split.parts_of(1)
    asked = [Position(0, 4), Position(1, 7), Position(first, 9)]
    assert set(current_positions(asked, split)) == {
        Position(0, 4),
        Position(first, 9),
        Position(second, 7),
    }


def test_a_front_that_does_not_know_of_a_split_waits_for_the_write_in_the_shard() -> None:
    asked = [Position(half, 7 + half) for half in PARTITION.split(1).parts_of(1)]
    assert current_positions(asked, PARTITION) == (Position(1, 13),)


def test_the_error_of_very_many_wrong_shards_can_be_sent() -> None:
    with pytest.raises(InvalidRequestError, match="shard 30000 is not one of 0 to 2") as raised:
        current_positions([Position(shard, 1) for shard in range(30_000, 33_000)], PARTITION)
    sent = rich_status(raised.value).trailing_metadata
    assert sum(len(value) for _, value in sent) < 4_096
