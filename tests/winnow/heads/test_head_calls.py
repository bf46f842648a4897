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
from winnow.heads.head_calls import call_worth_another_server, worth_another_server


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
    assert worth_another_server(error) is of_head
    if error is not None:
        assert call_worth_another_server(error) is of_call
