"""What an answer covers, as a table."""

import pytest
from fakes import fake_infos, reading

from winnow.domain.answered import ShardTimings
from winnow.domain.coverage import ShardStatus
from winnow.domain.reading import Reading
from winnow.errors import DeadlineExceededError, OverloadedError, WinnowError
from winnow.searcher import Retrieved
from winnow.stateless.answer.failures import Failure
from winnow.stateless.answer.merge import coverage_of
from winnow.stateless.answer.search_result import SearchResult

INFOS = fake_infos(3)
LATE = Failure(ShardStatus.TIMEOUT, "no reply")
FULL = Failure(ShardStatus.OVERLOADED, "full")


@pytest.mark.parametrize(
    ("failures", "error"),
    [
        ([LATE, LATE, LATE], DeadlineExceededError),
        ([LATE, FULL, LATE], OverloadedError),
        ([FULL, FULL, FULL], OverloadedError),
    ],
)
def test_all_shards_failing_without_a_reading_is_an_error(
    failures: list[Failure], error: type[WinnowError]
) -> None:
    with pytest.raises(error, match="no shard gave an answer"):
        coverage_of(INFOS, SearchResult({0: ()}, dict(enumerate(failures))))


def test_a_failed_shard_lowers_the_coverage() -> None:
    covered = coverage_of(INFOS, SearchResult({1: (reading("a"),)}, {0: LATE}))
    assert (covered.failed, covered.complete) == (10, False)
    assert [part.reason for part in covered.shards] == ["no reply", "", ""]


def test_the_writes_that_shards_knew_of_are_said_also_of_one_that_failed_later() -> None:
    covered = coverage_of(
        INFOS, SearchResult({1: (reading("a"),)}, {0: LATE, 2: LATE}, sequences={0: 7, 1: 0})
    )
    assert [part.sequence for part in covered.shards] == [7, 0, None]


def test_passages_are_those_after_the_write_that_a_shard_knew_of() -> None:
    """Writes come between two looks at a node, and the answer knows of them."""
    result = SearchResult()
    result.record_write(0, Retrieved((), (), ShardTimings(), sequence=7, passages=13))
    result.record_write(1, Retrieved((), (), ShardTimings(), sequence=3))  # of an older version
    result.record_write(0, Retrieved((), (), ShardTimings(), sequence=9, passages=15))
    result.add_readings(0, [reading("a")])
    covered = coverage_of(INFOS, result)
    assert [(part.sequence, part.passages) for part in covered.shards] == [
        *((7, 13), (3, 20)),
        (None, 30),
    ]
    assert covered.known == 63


def test_all_shards_failing_with_a_reading_in_hand_is_a_partial_answer() -> None:
    found: dict[int, tuple[Reading, ...]] = {1: (reading("a"), reading("b"))}
    covered = coverage_of(INFOS, SearchResult(found, {0: LATE, 1: LATE, 2: FULL}))
    assert (covered.searched, covered.known) == (0, 60)
    reasons = [part.reason for part in covered.shards]
    assert reasons == ["no reply", "no reply; 2 of its passages were read", "full"]
