"""What an answer lacked that another attempt might have."""

import pytest

from winnow.domain.answered import Answered, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.question import ReadScope
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
)
from winnow.policy.attempts import Lack
from winnow.stateless.answer.answer_cache import lack_of_answer, lack_of_error
from winnow.stateless.answer.failures import Failure, error_of

S = ShardStatus


def found(*statuses: ShardStatus, granted: int = 10) -> Answered:
    shards = [
        ShardCoverage(shard=n, passages=5, status=status) for n, status in enumerate(statuses)
    ]
    return Answered(
        answers=(),
        has_answer=False,
        coverage=Coverage.of(shards),
        timings=Timings(),
        passages_asked=10,
        passages_granted=granted,
        passages_read=granted,
        passages_needed=granted,
        read_scope=ReadScope.GLOBAL,
        question_truncated=False,
    )


@pytest.mark.parametrize(
    ("answered", "lack"),
    [
        (found(S.SEARCHED), Lack.NOTHING),
        (found(S.SEARCHED, S.UNAVAILABLE), Lack.NOTHING),
        (found(S.SEARCHED, S.FAILED, S.NOT_LOADED), Lack.NOTHING),
        (found(S.SEARCHED, S.TIMEOUT), Lack.TIME),
        (found(S.SEARCHED, S.ADAPTIVE), Lack.TIME),
        (found(S.SEARCHED, S.OVERLOADED), Lack.SHARE),
        (found(S.SEARCHED, S.OVERLOADED, S.TIMEOUT), Lack.SHARE | Lack.TIME),
        (found(S.SEARCHED, granted=3), Lack.ROOM),
    ],
)
def test_an_answer_lacks_what_its_shards_and_its_reading_lacked(
    answered: Answered, lack: Lack
) -> None:
    assert lack_of_answer(answered)[0] is lack


def test_an_answer_is_worth_more_if_more_was_searched_then_if_more_was_read() -> None:
    half, dim, whole = found(S.SEARCHED, S.FAILED), found(S.SEARCHED, granted=3), found(S.SEARCHED)
    two = found(S.SEARCHED, S.SEARCHED, granted=3)
    ranked = sorted([two, whole, dim, half], key=lambda each: lack_of_answer(each)[1])
    assert ranked == [dim, whole, half, two]


@pytest.mark.parametrize(
    ("error", "lack"),
    [
        (DeadlineExceededError("late"), Lack.TIME),
        (OverloadedError("full", 1.0), Lack.SHARE),
        (UnavailableError("gone"), Lack.NOTHING),
        (InvalidRequestError(Violation("question", "has no word in it")), Lack.NOTHING),
        (ValueError("a bug"), Lack.NOTHING),
        (error_of({0: Failure(S.TIMEOUT, "late")}, "none"), Lack.TIME),
        (error_of({0: Failure(S.OVERLOADED, "full", 1.0)}, "none"), Lack.SHARE),
        (
            error_of({0: Failure(S.UNAVAILABLE, "gone"), 1: Failure(S.TIMEOUT, "late")}, "none"),
            Lack.TIME,
        ),
    ],
)
def test_a_failure_lacks_what_the_shards_lacked(error: Exception, lack: Lack) -> None:
    assert lack_of_error(error) is lack
