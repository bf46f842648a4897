"""Calls of a client: what is sent with a request, and the error that a failed call raises."""

import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

from winnow.client.credentials import Access
from winnow.deadline import LONGEST
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    NotServedError,
    UnavailableError,
    Violation,
    WinnowError,
)
from winnow.quoting import quoted
from winnow.rpc import client_key, request_id
from winnow.rpc.status import error_of

DEFAULT_ADDRESS = "127.0.0.1:8080"
DEFAULT_TIMEOUT = 10.0
"""Seconds."""
_DETAILS = "grpc-status-details-bin"
_STARTS = "`winnow up --index DIR` starts one, and with --feed-listen HOST:PORT one that can be fed"
_NO_TRUST = "the authority, or the name, that is expected is not that of its certificate"
_HTTP = "HTTP is spoken there: give a port of gRPC, such as 8080 for questions or 8081 to feed"
_HINTS = (
    ("CERTIFICATE_VERIFY_FAILED", _NO_TRUST),
    ("Hostname Verification", _NO_TRUST),
    ("WRONG_VERSION_NUMBER", "what listens there speaks no TLS: leave out --tls and --ca"),
    ("http1.x server", _HTTP),
    ("Expected SETTINGS frame", "what listens there speaks no gRPC: check the port"),
    ("selected ALPN", _HTTP),
    (": Socket closed", "it may expect TLS (--ca) or a certificate of yours (--cert)"),
)
"""Parts of gRPC's messages about failed connections, and what to do about each."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FAILED_HOST = "Failed to connect to remote host: "
Metadata = tuple[tuple[str, str], ...]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, the method that takes it, and the conversion of the reply."""

    stub: Callable[[Any], Any]
    """The generated stub, which is made for a channel."""
    method: str
    request: Any
    result: Callable[[Any], Result]

    def on(self, channel: Any) -> Any:
        """The method on a channel."""
        return getattr(self.stub(channel), self.method)


class CallOptions:
    """Options of the calls of one client: its name, its token, the timeout."""

    def __init__(self, access: Access, client_name: str) -> None:
        """Raises InvalidRequestError if front nodes would not take the name of the client."""
        self._access = access
        self._name = ((client_key.KEY, client_name),) if client_name else ()
        if client_key.of_metadata(self._name) != client_name:
            name = quoted(client_name)
            problem = f"{name} is not 1 to 64 letters, digits or ._:@-"
            raise InvalidRequestError(Violation("client_name", problem))

    def of(self, timeout: float, identity: Metadata) -> dict[str, Any]:
        """The options of a call. The timeout is an hour at most, as on servers.

        Raises InvalidRequestError if the timeout is NaN.
        """
        if math.isnan(timeout):
            raise InvalidRequestError(Violation("timeout", "nan is no number of seconds"))
        metadata = (*identity, *self._name, *self._access.metadata())
        return {"timeout": min(timeout, LONGEST), "metadata": metadata}


class Failed(Protocol):
    """A failed call of gRPC for threads, or for an event loop."""

    def code(self) -> StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Any: ...


def identified(given: str | None) -> Metadata:
    """Metadata with the request id, or with a new one if it is None.

    Raises InvalidRequestError if front nodes would not take the id.
    """
    chosen = uuid.uuid4().hex[:16] if given is None else given
    if not _ID.fullmatch(chosen):
        raise InvalidRequestError(
            Violation("request_id", f"{quoted(chosen)} is not 1 to 64 letters, digits or ._-")
        )
    return ((request_id.KEY, chosen),)


def failure(call: Failed, address: str, timeout: float, metadata: Metadata) -> WinnowError:
    """The error to raise for a failed call, with its request id as a note."""
    error = _error(call, address, timeout)
    error.add_note(f"request id: {dict(metadata)[request_id.KEY]}")
    return error


def _error(call: Failed, address: str, timeout: float) -> WinnowError:
    code, details, trailing = call.code(), call.details() or "", call.trailing_metadata()
    sent = next((value for key, value in trailing or () if key == _DETAILS), None)
    if code is StatusCode.INVALID_ARGUMENT and (violations := _violations(sent)):
        return InvalidRequestError(*violations)
    if code is StatusCode.UNAVAILABLE and sent is None:
        hint = next((hint for part, hint in _HINTS if part in details), _STARTS)
        reason = details.rpartition(_FAILED_HOST)[2]  # without the addresses that were tried
        return UnavailableError(f"cannot reach a front node at {address}; {hint} ({reason})")
    if code is StatusCode.DEADLINE_EXCEEDED and sent is None:
        return DeadlineExceededError(f"no reply from {address} within {timeout:g} s")
    if code is StatusCode.UNIMPLEMENTED:
        return NotServedError(
            f"{address} does not serve this: a front needs --shards to answer, --heads to "
            f"predict, --feed-listen (a separate port) to be fed ({details})"
        )
    return error_of(code, details, trailing)


def _violations(details: bytes | None) -> list[Violation]:
    found, bad = [], error_details_pb2.BadRequest()
    try:
        for packed in status_pb2.Status.FromString(details or b"").details:
            if packed.Unpack(bad):
                found += [Violation(v.field, v.description) for v in bad.field_violations]
    except DecodeError:
        return []
    return found
