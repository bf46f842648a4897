"""One table from errors to statuses, and back."""

from base64 import b64encode
from typing import Any
from urllib.parse import quote

import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from hypothesis import given
from hypothesis import strategies as st

from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    Fault,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    LeavingError,
    NotFoundError,
    NotLoadedError,
    OverloadedError,
    RestoringError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.rpc.status import INTERNAL_MESSAGE, code_of, error_of, error_of_node, rich_status
from winnow.stateless.http.problems import problem_of

TABLE = [
    (InvalidRequestError(Violation("f", "d")), StatusCode.INVALID_ARGUMENT),
    (OverloadedError("full"), StatusCode.RESOURCE_EXHAUSTED),
    (DeadlineExceededError("late"), StatusCode.DEADLINE_EXCEEDED),
    (UnavailableError("gone"), StatusCode.UNAVAILABLE),
    (IdentityError("other"), StatusCode.FAILED_PRECONDITION),
    (GenerationGoneError("gone"), StatusCode.ABORTED),
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


def test_the_caller_learns_how_long_to_wait() -> None:
    sent = rich_status(OverloadedError("full", 0.25))
    back = error_of(sent.code, "full", sent.trailing_metadata)
    assert isinstance(back, OverloadedError)
    assert back.retry_after == 0.25


def test_a_message_that_is_too_large_is_not_to_be_sent_again() -> None:
    said = "SERVER: Received message larger than max (5000005 vs. 4194304)"
    error = error_of(StatusCode.RESOURCE_EXHAUSTED, said)
    assert isinstance(error, InvalidRequestError)
    assert str(error) == (
        "request: a message of 5000005 bytes is over the limit of 4194304: send a smaller request, "
        "or several"
    )


def test_violations_of_what_a_front_sent_to_a_node_are_not_for_callers() -> None:
    said = "Received message larger than max (5000005 vs. 4194304)"
    failed = AioRpcError(StatusCode.RESOURCE_EXHAUSTED, Metadata(), Metadata(), said)
    error = error_of_node(failed, "secret-host:8090")
    assert "secret-host:8090" in str(error)
    assert "secret-host" not in str(details(error))
    assert "secret-host" not in str(problem_of(error))


def test_a_node_without_its_shard_is_not_the_same_as_one_that_is_gone() -> None:
    sent = rich_status(NotLoadedError("graph.hnsw is damaged"))
    assert sent.code is StatusCode.UNAVAILABLE
    assert type(error_of(sent.code, "x", sent.trailing_metadata)) is NotLoadedError


def test_a_node_that_leaves_is_told_from_one_that_cannot_be_reached() -> None:
    sent = rich_status(LeavingError("the node is leaving"))
    assert sent.code is StatusCode.UNAVAILABLE
    assert type(error_of(sent.code, "x", sent.trailing_metadata)) is LeavingError


def test_a_node_that_restores_a_shard_is_told_from_one_that_cannot_be_reached() -> None:
    sent = rich_status(RestoringError("the shard is being restored"))
    assert sent.code is StatusCode.UNAVAILABLE
    assert type(error_of(sent.code, "x", sent.trailing_metadata)) is RestoringError


@pytest.mark.parametrize("trailing", [None, (), [("grpc-status-details-bin", b"\xff\xff")]])
def test_details_that_are_missing_or_broken_do_no_harm(trailing: Any) -> None:
    for code in (StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED):
        assert str(error_of(code, "said", trailing)) == "said"


def test_every_part_that_failed_is_named_to_programs() -> None:
    faults = [Fault("TIMEOUT", {"shard": "1"}), Fault("UNAVAILABLE", {"shard": "2"})]
    told = []
    for packed in details(UnavailableError("no shard answered", faults)).details:
        info = error_details_pb2.ErrorInfo()
        assert packed.Unpack(info)
        assert info.domain == "winnow"
        told.append(Fault(info.reason, dict(info.metadata)))
    assert told == faults


def test_inner_faults_tell_nothing_to_strangers() -> None:
    status = rich_status(ArtefactError("/secret/path is damaged"))
    assert status.details == INTERNAL_MESSAGE


TEXTS = st.text(max_size=3_000) | st.sampled_from(["%" * 9_000, "é" * 9_000, "long " * 9_000])
VIOLATIONS = st.lists(st.builds(Violation, TEXTS, TEXTS), min_size=1, max_size=40)
FAULTS = st.integers(0, 1_000).map(lambda many: [Fault("TIMEOUT", {"shard": "17"})] * many)


@given(
    st.builds(NotFoundError, TEXTS)
    | VIOLATIONS.map(lambda all_of_them: InvalidRequestError(*all_of_them))
    | st.builds(UnavailableError, TEXTS, FAULTS)
    | st.builds(OverloadedError, TEXTS, st.just(0.5), FAULTS)
)
def test_an_error_of_any_length_is_no_more_metadata_than_grpc_takes(error: WinnowError) -> None:
    """Of more than 8 KB it refuses some at random, and the caller learns of nothing else."""
    status = rich_status(error, "0123456789abcdef" * 4)
    message = quote(status.details, safe=" !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
    assert len(message) + sum(len(b64encode(v)) for _, v in status.trailing_metadata) < 7_600


def test_the_first_of_many_faults_and_violations_are_told() -> None:
    many = UnavailableError("gone", [Fault("TIMEOUT", {"shard": str(n)}) for n in range(1_000)])
    assert 10 < len(details(many).details) < 1_000
    bad = error_details_pb2.BadRequest()
    wrong = InvalidRequestError(*[Violation(f"puts[{n}]", "is empty") for n in range(1_000)])
    assert details(wrong).details[0].Unpack(bad)
    assert 10 < len(bad.field_violations) < 1_000
