"""Converts domain errors to gRPC statuses and back.

Details use the rich error model (google.rpc.Status, https://google.aip.dev/193).
"""

import re
from collections.abc import Container, Iterable, Iterator
from itertools import accumulate, takewhile
from typing import Any, TypeVar

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import StatusCode
from grpc_status import rpc_status

from winnow.caller import message_of, violations_of
from winnow.errors import (
    ARCHIVE_UNREACHABLE,
    INDEX_IS_COPY,
    LEAVING,
    NOT_LOADED,
    NOT_WRITABLE,
    RESTORE_FAILED,
    RESTORING,
    TENANT_QUOTA,
    WRITES_HELD,
    ArchiveUnreachableError,
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    IndexIsCopyError,
    InvalidRequestError,
    LeavingError,
    NotFoundError,
    NotLoadedError,
    NotWritableError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RestoreFailedError,
    RestoringError,
    UnauthenticatedError,
    UnavailableError,
    WinnowError,
    WritesHeldError,
    invalid_field,
)

_CODE_BY_ERROR: tuple[tuple[type[WinnowError], StatusCode], ...] = (
    (InvalidRequestError, StatusCode.INVALID_ARGUMENT),
    (NotFoundError, StatusCode.NOT_FOUND),
    (UnauthenticatedError, StatusCode.UNAUTHENTICATED),
    (PermissionDeniedError, StatusCode.PERMISSION_DENIED),
    (OverloadedError, StatusCode.RESOURCE_EXHAUSTED),
    (QuotaExceededError, StatusCode.RESOURCE_EXHAUSTED),
    (DeadlineExceededError, StatusCode.DEADLINE_EXCEEDED),
    (UnavailableError, StatusCode.UNAVAILABLE),
    (IdentityError, StatusCode.FAILED_PRECONDITION),
    (NotWritableError, StatusCode.FAILED_PRECONDITION),
    (GenerationGoneError, StatusCode.ABORTED),
)
_ERROR_BY_CODE: dict[StatusCode, type[WinnowError]] = {
    StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    StatusCode.NOT_FOUND: NotFoundError,
    StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    StatusCode.FAILED_PRECONDITION: IdentityError,
    StatusCode.ABORTED: GenerationGoneError,
}
"""Errors by status, for statuses that stand for one error only."""

_KIND_BY_REASON: dict[str, type[UnavailableError]] = {
    NOT_LOADED: NotLoadedError,
    INDEX_IS_COPY: IndexIsCopyError,
    RESTORING: RestoringError,
    ARCHIVE_UNREACHABLE: ArchiveUnreachableError,
    RESTORE_FAILED: RestoreFailedError,
    WRITES_HELD: WritesHeldError,
    LEAVING: LeavingError,
}
"""Errors of the status UNAVAILABLE, by the reason of their fault; the first match counts."""

_CODE_BY_NUMBER: dict[int, StatusCode] = {code.value[0]: code for code in StatusCode}
_PUBLIC_NODE_MESSAGES: tuple[tuple[type[WinnowError], str], ...] = (
    (NotLoadedError, "a node could not load its data"),
    (LeavingError, "a node is shutting down: try again"),
    (WritesHeldError, "writes wait while an alias of the index is switched: try again"),
    (IndexIsCopyError, "the index is a copy of another one, which takes the writes"),
    (RestoringError, "passages are being restored from an archive: try again"),
    (ArchiveUnreachableError, "the archive of the passages cannot be reached now: try again"),
    (RestoreFailedError, "passages cannot be restored from their archive now: try again"),
    (UnavailableError, "a node could not be reached, or is not ready: try again"),
    (OverloadedError, "a node is overloaded: try again"),
    (QuotaExceededError, "the tenant has stored as much as its quota allows"),
    (DeadlineExceededError, "a node did not reply in time"),
    (NotWritableError, "a node is not configured to take writes"),
    (IdentityError, "a node has another index, bundle or version"),
    (WinnowError, "a node failed"),
)
"""Public messages for errors of other nodes, by type; the first match counts."""

_TOO_LARGE = re.compile(r"(?:SERVER: |CLIENT: )?\w+ message larger than max \((\d+) vs\. (\d+)\)")
"""gRPC's error for a message that is too large, which has the status of an overload."""

_MAX_MESSAGE = 2_000
_MAX_DESCRIPTION, _MAX_VIOLATIONS = 600, 1_800
_MAX_DETAILS = 1_900
"""Maximum bytes of an error message, of one violation, of all violations, and of all details.

An error is sent as metadata: once as a header with the message, and once in base64 with message and
details. gRPC may refuse metadata of more than 8 KB, at random.
"""

_UNESCAPED = frozenset(range(ord(" "), ord("~") + 1)) - {ord("%")}
"""Bytes that a header contains unchanged; every other byte takes three (`%C3`)."""

Trailing = Iterable[tuple[str, Any]] | None
Detail = TypeVar("Detail", bound=Message)

_DETAILS_KEY = "grpc-status-details-bin"
_DOMAIN = "winnow"
INTERNAL_MESSAGE = "internal error; the server's log has the details under this request id"


def code_of(error: WinnowError) -> StatusCode:
    """Returns the gRPC status of a domain error."""
    return next(
        (code for kind, code in _CODE_BY_ERROR if isinstance(error, kind)), StatusCode.INTERNAL
    )


def error_of(code: StatusCode, message: str, trailing: Trailing = ()) -> WinnowError:
    """Returns the domain error of a gRPC status, on the caller's side.

    `trailing` is the trailing metadata of the call, which carries the details.
    """
    if code is StatusCode.RESOURCE_EXHAUSTED:
        return _exhausted(message, trailing)
    if code in (StatusCode.UNAVAILABLE, StatusCode.CANCELLED):
        return _unavailable(_reasons(trailing))(message)
    if code is StatusCode.FAILED_PRECONDITION and NOT_WRITABLE in _reasons(trailing):
        return NotWritableError(message)
    return _ERROR_BY_CODE.get(code, WinnowError)(message)


def _exhausted(message: str, trailing: Trailing) -> WinnowError:
    """Returns the error of the status RESOURCE_EXHAUSTED."""
    delays = [info.retry_delay for info in _details_of(trailing, error_details_pb2.RetryInfo)]
    if delays:
        return OverloadedError(message, delays[0].ToNanoseconds() / 1e9)
    if _TOO_LARGE.search(message):
        problem = _TOO_LARGE.sub(r"a message of \1 bytes is over the limit of \2", message)
        return invalid_field("request", f"{problem}: send a smaller request, or several")
    infos = _details_of(trailing, error_details_pb2.ErrorInfo)
    quota = next((each for each in infos if each.reason == TENANT_QUOTA), None)
    if quota is not None:
        return QuotaExceededError(message, dict(quota.metadata))
    return OverloadedError(message)


def _unavailable(reasons: Container[str]) -> type[UnavailableError]:
    kinds = (kind for reason, kind in _KIND_BY_REASON.items() if reason in reasons)
    return next(kinds, UnavailableError)


def error_of_node(error: grpc.aio.AioRpcError, node: str) -> WinnowError:
    """Returns the domain error of a failed call to another node.

    The message names the node and quotes its error. Callers without the scope `admin` see only a
    public message for the kind of error.
    """
    domain_error = error_of(error.code(), f"{node}: {error.details()}", error.trailing_metadata())
    return domain_error.with_public(public_node_message(domain_error))


def error_to_bytes(error: WinnowError) -> bytes:
    """Serialises the error of one part of a reply, as a google.rpc.Status."""
    data: bytes = dict(rich_status(error).trailing_metadata)[_DETAILS_KEY]
    return data


def error_of_bytes(data: bytes, node: str) -> WinnowError:
    """Converts the error of one part of another node's reply; inverse of `error_to_bytes`."""
    try:
        status = status_pb2.Status.FromString(data)
    except DecodeError:
        status = status_pb2.Status()
    code = _CODE_BY_NUMBER.get(status.code, StatusCode.UNKNOWN)
    trailing = ((_DETAILS_KEY, data),)
    domain_error = error_of(code, f"{node}: {status.message}", trailing)
    return domain_error.with_public(public_node_message(domain_error))


def public_node_message(error: WinnowError) -> str:
    """Returns the message for callers who may not see details of nodes; names the kind of error."""
    return next(public for kind, public in _PUBLIC_NODE_MESSAGES if isinstance(error, kind))


def rich_status(error: WinnowError, request_id: str = "") -> rpc_status._Status:
    """Returns the gRPC status of an error, with details for clients and the request id if set."""
    code: int = code_of(error).value[0]
    if code == code_pb2.INTERNAL:
        message = status_pb2.Status(code=code, message=INTERNAL_MESSAGE)
    else:
        message = status_pb2.Status(code=code, message=_shortened(message_of(error)))
        for detail in _details(error):
            if sum(each.ByteSize() for each in message.details) + detail.ByteSize() > _MAX_DETAILS:
                break
            message.details.append(detail)
    if request_id:
        message.details.append(_packed(error_details_pb2.RequestInfo(request_id=request_id)))
    return rpc_status.to_status(message)


def _shortened(text: str, max_bytes: int = _MAX_MESSAGE) -> str:
    """Returns a text as valid UTF-8, cut to `max_bytes` of a header. File names may be invalid."""
    data = text.encode(errors="backslashreplace")
    lengths = accumulate(1 if byte in _UNESCAPED else 3 for byte in data)
    fits = sum(1 for _ in takewhile(lambda length: length <= max_bytes, lengths))
    return data[:fits].decode(errors="ignore") + ("…" if fits < len(data) else "")


def _details(error: WinnowError) -> list[any_pb2.Any]:
    packed: list[any_pb2.Any] = []
    if isinstance(error, InvalidRequestError):
        bad = error_details_pb2.BadRequest()
        for violation in violations_of(error):
            description = _shortened(violation.description, _MAX_DESCRIPTION)
            bad.field_violations.add(field=_shortened(violation.field), description=description)
            if bad.ByteSize() > _MAX_VIOLATIONS:
                del bad.field_violations[-1]
                break
        packed.append(_packed(bad))
    if isinstance(error, OverloadedError):
        delay = duration_pb2.Duration()
        delay.FromNanoseconds(int(error.retry_after * 1e9))
        packed.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    for fault in error.faults:
        info = error_details_pb2.ErrorInfo(
            reason=fault.reason, domain=_DOMAIN, metadata=fault.metadata
        )
        packed.append(_packed(info))
    return packed


def _packed(message: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed


def _details_of(trailing: Trailing, kind: type[Detail]) -> Iterator[Detail]:
    """Yields the details of type `kind` in the trailing metadata; none if they cannot be parsed."""
    data = next((value for key, value in trailing or () if key == _DETAILS_KEY), b"")
    try:
        status = status_pb2.Status.FromString(data)
        for packed in status.details:
            detail = kind()
            if packed.Unpack(detail):
                yield detail
    except DecodeError:
        return


def _reasons(trailing: Trailing) -> set[str]:
    return {info.reason for info in _details_of(trailing, error_details_pb2.ErrorInfo)}
