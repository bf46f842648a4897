"""Domain errors to gRPC statuses and back: the one table.

Knows the rich error model (google.rpc.Status, https://google.aip.dev/193).
"""

from google.protobuf import any_pb2, duration_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import StatusCode
from grpc_status import rpc_status

from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)

_CODES: tuple[tuple[type[WinnowError], StatusCode], ...] = (
    (InvalidRequestError, StatusCode.INVALID_ARGUMENT),
    (OverloadedError, StatusCode.RESOURCE_EXHAUSTED),
    (DeadlineExceededError, StatusCode.DEADLINE_EXCEEDED),
    (UnavailableError, StatusCode.UNAVAILABLE),
    (IdentityError, StatusCode.FAILED_PRECONDITION),
)

INTERNAL_MESSAGE = "internal error; the server's log has the details under this request id"


def code_of(error: WinnowError) -> StatusCode:
    """The gRPC status of a domain error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), StatusCode.INTERNAL)


def error_of(code: StatusCode, message: str) -> WinnowError:
    """The domain error of a gRPC status: the way back, on the caller's side."""
    if code is StatusCode.RESOURCE_EXHAUSTED:
        return OverloadedError(message)
    if code is StatusCode.DEADLINE_EXCEEDED:
        return DeadlineExceededError(message)
    if code is StatusCode.FAILED_PRECONDITION:
        return IdentityError(message)
    if code in (StatusCode.UNAVAILABLE, StatusCode.CANCELLED):
        return UnavailableError(message)
    return WinnowError(message)


def rich_status(error: WinnowError) -> rpc_status._Status:
    """A status with the details that clients can act upon."""
    code: int = code_of(error).value[0]
    if code == code_pb2.INTERNAL:
        return rpc_status.to_status(status_pb2.Status(code=code, message=INTERNAL_MESSAGE))
    message = status_pb2.Status(code=code, message=str(error))
    message.details.extend(_details(error))
    return rpc_status.to_status(message)


def _details(error: WinnowError) -> list[any_pb2.Any]:
    packed: list[any_pb2.Any] = []
    if isinstance(error, InvalidRequestError):
        bad = error_details_pb2.BadRequest()
        for violation in error.violations:
            bad.field_violations.add(field=violation.field, description=violation.description)
        packed.append(any_pb2.Any())
        packed[-1].Pack(bad)
    if isinstance(error, OverloadedError):
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(error.retry_after * 1e9))
        packed.append(any_pb2.Any())
        packed[-1].Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return packed
