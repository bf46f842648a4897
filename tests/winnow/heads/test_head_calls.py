"""What another head server may do better."""

import pytest

from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.heads.head_calls import call_may_succeed_elsewhere, may_succeed_elsewhere


@pytest.mark.parametrize(
    ("error", "of_head", "of_call"),
    [
        (UnavailableError("x"), True, True),
        (OverloadedError("x"), True, True),
        (DeadlineExceededError("x"), False, True),
        (IdentityError("x"), False, True),
        (WinnowError("x"), False, True),
        (NotFoundError("x"), False, True),
        (InvalidRequestError(Violation("f", "x")), False, False),
        (None, False, False),
    ],
)
def test_which_failures_are_worth_another_server(
    error: WinnowError | None, of_head: bool, of_call: bool
) -> None:
    assert may_succeed_elsewhere(error) is of_head
    if error is not None:
        assert call_may_succeed_elsewhere(error) is of_call
