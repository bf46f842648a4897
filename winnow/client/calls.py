"""Calls of a client: the request, its metadata and timeout, and the error of a failed call."""

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from winnow.client.credentials import LiveCredentials
from winnow.deadline import MAX_SECONDS
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NotServedError,
    UnavailableError,
    Violation,
    WinnowError,
    invalid_field,
)
from winnow.quoting import quoted, shortened
from winnow.rpc import client_key, request_id
from winnow.rpc.status import error_of

DEFAULT_TIMEOUT = 10.0
"""Seconds until a question or a prediction is given up."""
_DETAILS = "grpc-status-details-bin"
_START_HINT = (
    "start one with `winnow up --index DIR` (to feed it, add --feed-listen HOST:PORT), or with "
    "`winnow reader` to read texts without an index"
)
_TRUST_HINT = "its certificate has another authority or name than expected"
_HTTP_HINT = "that port serves HTTP: use a gRPC port, such as 8080 to ask or 8081 to feed"
_ENDED_HINT = "the server ended during the call: send it again"
_HINTS = (
    ("Cancelling all calls", _ENDED_HINT),
    ("Stream removed", _ENDED_HINT),
    ("CERTIFICATE_VERIFY_FAILED", _TRUST_HINT),
    ("Hostname Verification", _TRUST_HINT),
    ("WRONG_VERSION_NUMBER", "that port serves no TLS: leave out --tls and --ca"),
    ("http1.x server", _HTTP_HINT),
    ("Expected SETTINGS frame", "that port serves no gRPC: check the port"),
    ("selected ALPN", _HTTP_HINT),
    (": Socket closed", "the server may expect TLS (--ca) or a client certificate (--cert)"),
)
"""Hints for failed connections, by a part of gRPC's error message."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FAILED_HOST = "Failed to connect to remote host: "
Metadata = tuple[tuple[str, str], ...]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, the RPC that takes it, and the conversion of its reply."""

    stub: Callable[[Any], Any]
    """The generated stub class, called with a channel."""
    method: str
    """Name of the RPC."""
    request: Any
    result: Callable[[Any], Result]
    """Converts the reply to plain values."""

    def method_of(self, channel: Any) -> Any:
        """The RPC on a channel."""
        return getattr(self.stub(channel), self.method)


def set_index(request: Any, index: str) -> None:
    """Sets the index of a request that has one. An empty name stands for the default index."""
    if index and "index" in request.DESCRIPTOR.fields_by_name:
        request.index = index


def set_tenant(request: Any, tenant: str) -> None:
    """Sets the tenant of a request that may have one, and has none yet. An empty name leaves it to
    the caller's key.
    """
    if tenant and "tenant" in request.DESCRIPTOR.fields_by_name and not request.tenant:
        try:
            request.tenant = tenant
        except (TypeError, ValueError) as error:
            raise invalid_field("tenant", shortened(str(error))) from error


def limited_timeout(seconds: float) -> float:
    """Returns a timeout, cut to one hour, the limit of servers.

    Raises InvalidRequestError if it is not a number above 0.
    """
    is_number = isinstance(seconds, Real) and not isinstance(seconds, bool)
    if not is_number or not seconds > 0:  # NaN too
        problem = f"{shortened(str(seconds))} is not a number of seconds above 0"
        raise invalid_field("timeout", problem)
    return float(min(seconds, MAX_SECONDS))


class CallOptions:
    """Builds the gRPC arguments of a client's calls: timeout, client name and token."""

    def __init__(self, credentials: LiveCredentials, client_name: str) -> None:
        """Raises InvalidRequestError if the client name is invalid."""
        self._credentials = credentials
        self._name = ((client_key.KEY, client_name),) if client_name else ()
        if client_key.of_metadata(self._name) != client_name:
            name = quoted(client_name)
            problem = f"{name} is not 1 to 64 letters, digits or ._:@-"
            raise invalid_field("client_name", problem)

    def arguments(self, timeout: float, id_metadata: Metadata) -> dict[str, Any]:
        """Returns the keyword arguments of a gRPC call.

        Raises InvalidRequestError if the timeout is not a number above 0.
        """
        limited = limited_timeout(timeout)
        metadata = (*id_metadata, *self._name, *self._credentials.metadata())
        return {"timeout": limited, "metadata": metadata}


class FailedCall(Protocol):
    """A failed gRPC call, of the synchronous or the asyncio API."""

    def code(self) -> StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Any: ...


def request_id_metadata(wanted: str | None) -> Metadata:
    """Metadata with a request id; a random id if `wanted` is None.

    Raises InvalidRequestError if the id is invalid.
    """
    identifier = uuid.uuid4().hex[:16] if wanted is None else wanted
    if not isinstance(identifier, str) or not _REQUEST_ID.fullmatch(identifier):
        raise invalid_field(
            "request_id", f"{quoted(str(identifier))} is not 1 to 64 letters, digits or ._-"
        )
    return ((request_id.KEY, identifier),)


def call_error(
    call: FailedCall, address: str, timeout: float, id_metadata: Metadata
) -> WinnowError:
    """The error to raise for a failed call, with its request id as a note."""
    error = _error(call, address, timeout)
    error.add_note(f"request id: {dict(id_metadata)[request_id.KEY]}")
    return error


def _error(call: FailedCall, address: str, timeout: float) -> WinnowError:
    code, details, trailing = call.code(), call.details() or "", call.trailing_metadata()
    # only front nodes send error details: without details, the call has not reached one
    packed = next((value for key, value in trailing or () if key == _DETAILS), None)
    if code is StatusCode.INVALID_ARGUMENT and (violations := _violations(packed)):
        return InvalidRequestError(*violations)
    if code is StatusCode.UNAVAILABLE and packed is None:
        hint = next((hint for part, hint in _HINTS if part in details), _START_HINT)
        reason = details.rpartition(_FAILED_HOST)[2]  # without the addresses that were tried
        # a retry cannot help at a wrong port
        kind = NotServedError if hint == _HTTP_HINT else UnavailableError
        return kind(f"cannot reach a front node at {address}; {hint} ({reason})")
    if code is StatusCode.DEADLINE_EXCEEDED and packed is None:
        return DeadlineExceededError(f"no reply from {address} within {timeout:g} s")
    if code is StatusCode.UNIMPLEMENTED:
        return NotServedError(
            f"{address} does not serve this call: it is not a front node, or the front lacks "
            "--shards (to answer), --heads (to predict), --reader-threads (to read texts) or "
            f"--feed-listen (to feed, on that port), or is of an older version ({details})"
        )
    return error_of(code, details, trailing)


def _violations(packed: bytes | None) -> list[Violation]:
    violations, bad = [], error_details_pb2.BadRequest()
    try:
        for detail in status_pb2.Status.FromString(packed or b"").details:
            if detail.Unpack(bad):
                violations += [Violation(v.field, v.description) for v in bad.field_violations]
    except DecodeError:
        return []
    return violations
