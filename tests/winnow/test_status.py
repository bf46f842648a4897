"""One table from errors to statuses, and back."""

import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.rpc.status import INTERNAL_MESSAGE, code_of, error_of, rich_status

TABLE = [
    (InvalidRequestError(Violation("f", "d")), StatusCode.INVALID_ARGUMENT),
    (OverloadedError("full"), StatusCode.RESOURCE_EXHAUSTED),
    (DeadlineExceededError("late"), StatusCode.DEADLINE_EXCEEDED),
    (UnavailableError("gone"), StatusCode.UNAVAILABLE),
    (IdentityError("other"), StatusCode.FAILED_PRECONDITION),
    (ArtefactError("broken"), StatusCode.INTERNAL),
]


@pytest.mark.parametrize(("error", "code"), TABLE)
def test_every_error_has_its_status(error: WinnowError, code: StatusCode) -> None:
    assert code_of(error) is code
    assert rich_status(error).code is code


@pytest.mark.parametrize(("error", "code"), TABLE[1:5])
def test_the_caller_gets_the_error_back(error: WinnowError, code: StatusCode) -> None:
    assert type(error_of(code, "x")) is type(error)


def details(error: WinnowError) -> status_pb2.Status:
    metadata = dict(rich_status(error).trailing_metadata)
    return status_pb2.Status.FromString(metadata["grpc-status-details-bin"])


def test_a_violation_names_its_field() -> None:
    bad = error_details_pb2.BadRequest()
    assert details(InvalidRequestError(Violation("question", "is empty"))).details[0].Unpack(bad)
    assert bad.field_violations[0].field == "question"


def test_an_overload_says_when_to_come_back() -> None:
    retry = error_details_pb2.RetryInfo()
    assert details(OverloadedError("full", 0.25)).details[0].Unpack(retry)
    assert retry.retry_delay.ToMilliseconds() == 250


def test_inner_faults_tell_nothing_to_strangers() -> None:
    status = rich_status(ArtefactError("/secret/path is damaged"))
    assert status.details == INTERNAL_MESSAGE
