"""Which passages are read before they are known to be needed."""

import pytest

from winnow.stateless.policy.reading import SpeculationLimit


@pytest.mark.parametrize(
    ("shard", "reads", "ahead", "needed", "allowed"),
    [
        (0, {0: 1}, 0, 1, True),  # its second reader is idle
        (0, {0: 2}, 0, 1, False),  # it would wait for a reader
        (1, {0: 2}, 0, 1, True),  # another shard has an idle reader
        (1, {0: 2, 1: 1}, 0, 1, False),  # three are read at once
        (1, {0: 3, 1: 0}, 0, 4, False),
        (1, {0: 1}, 1, 1, True),
        (1, {0: 1}, 2, 1, False),  # at first only as many as are read at once
        (1, {0: 1}, 3, 4, True),
        (1, {0: 1}, 4, 4, False),  # as many were read ahead as are needed
        (2, {}, 0, 1, False),  # all its readers are busy
        (3, {}, 0, 1, False),  # nothing is known of it
    ],
)
def test_a_passage_is_read_ahead_if_its_shard_has_an_idle_reader(
    shard: int, reads: dict[int, int], ahead: int, needed: int, allowed: bool
) -> None:
    limit = SpeculationLimit({0: 2, 1: 2, 2: 0}, max_concurrent=3)
    assert limit.allows(shard, reads, ahead, needed) is allowed


@pytest.mark.parametrize(
    ("idle", "most", "reads"),
    [
        ({0: 2, 1: 2}, 3, 3),
        ({0: 1, 1: 1}, 3, 2),
        ({0: 1, 1: 0}, 3, 0),  # the needed read takes the only reader
        ({0: 2}, 1, 0),
        ({0: 2}, 0, 0),
        ({}, 3, 0),
    ],
)
def test_as_many_are_read_at_once_as_readers_are_idle(
    idle: dict[int, int], most: int, reads: int
) -> None:
    assert SpeculationLimit(idle, most).concurrent_reads == reads
