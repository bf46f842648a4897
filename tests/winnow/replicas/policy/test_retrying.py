"""What is tried again, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.replicas.policy.retrying import RetrySettings, may_repeat, should_retry

SETTINGS = RetrySettings(max_retries=1, min_time_left=0.005)
GONE = UnavailableError("connection refused")
FULL = OverloadedError("full")
SWAPPED = GenerationGoneError("rows of an older generation")


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (GONE, True),
        (FULL, True),
        (SWAPPED, True),
        (DeadlineExceededError("late"), False),
        (InvalidRequestError(Violation("question", "is empty")), False),
        (IdentityError("another bundle"), False),
        (ArtefactError("damaged"), False),
        (WinnowError("a bug"), False),
    ],
)
def test_only_what_another_replica_can_mend_is_tried_again(error: WinnowError, again: bool) -> None:
    assert should_retry(SETTINGS, error, retries=0, time_left=1.0) is again


@pytest.mark.parametrize(
    ("most", "retried", "again"), [(0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True)]
)
def test_it_is_tried_again_so_often_and_no_more(most: int, retried: int, again: bool) -> None:
    assert should_retry(RetrySettings(max_retries=most), GONE, retried, time_left=1.0) is again


@pytest.mark.parametrize(
    ("left", "typical", "again"),
    [
        (0.005, 0.0, True),
        (0.004, 0.0, False),
        (-1.0, 0.0, False),
        (0.05, 0.05, True),
        (0.05, 0.06, False),
        (0.004, 0.001, False),
    ],
)
def test_it_is_tried_again_only_with_enough_time_left(
    left: float, typical: float, again: bool
) -> None:
    assert should_retry(SETTINGS, GONE, 0, left, typical) is again


@given(st.sampled_from([GONE, FULL, SWAPPED]), st.integers(0, 5), st.floats(0.01, 10))
def test_whatever_fails_there_are_only_so_many_tries(
    error: WinnowError, most: int, left: float
) -> None:
    retried = 0
    while should_retry(RetrySettings(max_retries=most), error, retried, left):
        retried += 1
    assert retried == most


@pytest.mark.parametrize(
    ("repeat", "error", "again"),
    [
        (True, UnavailableError("gone"), True),
        (True, OverloadedError("full"), False),
        (False, UnavailableError("gone"), False),
    ],
)
def test_the_same_replica_is_asked_again_only_if_it_was_unavailable(
    repeat: bool, error: WinnowError, again: bool
) -> None:
    assert may_repeat(RetrySettings(repeat=repeat), error) is again
