"""Converts errors to HTTP statuses and problem details (RFC 9457)."""

import math
from http import HTTPStatus

from grpc import StatusCode
from starlette.responses import Response

from winnow.caller import message_of, violations_of
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    Violation,
    WinnowError,
)
from winnow.rpc.request_id import KEY
from winnow.rpc.status import INTERNAL_MESSAGE, code_of
from winnow.stateless.http.json_text import message_to_json
from winnow.v1 import http_pb2

MEDIA_TYPE = "application/problem+json"
STATUSES = {
    StatusCode.INVALID_ARGUMENT: HTTPStatus.BAD_REQUEST,
    StatusCode.FAILED_PRECONDITION: HTTPStatus.BAD_REQUEST,
    StatusCode.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    StatusCode.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    StatusCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    StatusCode.ABORTED: HTTPStatus.CONFLICT,
    StatusCode.RESOURCE_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    StatusCode.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    StatusCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    StatusCode.DEADLINE_EXCEEDED: HTTPStatus.GATEWAY_TIMEOUT,
}
"""HTTP status of each gRPC status, as in google/rpc/code.proto."""
_MAX_CHARACTERS = 4_000
"""Maximum number of characters of a text in a problem."""


class HttpRefusedError(InvalidRequestError):
    """Refuses a request with an HTTP status that has no gRPC status."""

    def __init__(self, status: HTTPStatus, field: str, description: str) -> None:
        super().__init__(Violation(field, description))
        self.status = status


class LateBodyError(DeadlineExceededError):
    """The caller took too long to send the body of its request."""


def status_of(error: WinnowError) -> HTTPStatus:
    """Returns the HTTP status of an error."""
    if isinstance(error, HttpRefusedError):
        return error.status
    if isinstance(error, LateBodyError):
        return HTTPStatus.REQUEST_TIMEOUT
    return STATUSES[code_of(error)]


def problem_of(error: WinnowError, request_id: str = "") -> http_pb2.Problem:
    """Returns the problem details of an error."""
    code, status = code_of(error), status_of(error)
    problem = http_pb2.Problem(
        type="about:blank",
        title=status.phrase,
        status=status.value,
        detail=INTERNAL_MESSAGE if code is StatusCode.INTERNAL else _sendable(message_of(error)),
        code=code.name,
        request_id=request_id,
    )
    if isinstance(error, InvalidRequestError):
        for each in violations_of(error):
            description = _sendable(each.description)
            problem.violations.add(field=_sendable(each.field), description=description)
    if isinstance(error, OverloadedError):
        problem.retry_after_seconds = error.retry_after
    for fault in error.faults:
        problem.faults.add(reason=fault.reason, metadata=fault.metadata)
    return problem


def response_of(error: WinnowError, request_id: str) -> Response:
    """Returns the HTTP response of an error."""
    problem = problem_of(error, request_id)
    headers = {"content-type": MEDIA_TYPE, KEY: request_id}
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"  # RFC 6750
    if problem.HasField("retry_after_seconds"):  # the header has whole seconds
        headers["retry-after"] = str(max(math.ceil(problem.retry_after_seconds), 1))
    return Response(message_to_json(problem), problem.status, headers)


def _sendable(text: str) -> str:
    """Escapes characters that JSON cannot contain, such as in file names that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()[:_MAX_CHARACTERS]
