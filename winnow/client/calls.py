"""What goes along with a question, and what a failed call means to the caller."""

import math
import re
import uuid
from typing import Any, Protocol

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

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
"""What gRPC says about a connection that was made and came to nothing, and what to do."""
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
Metadata = tuple[tuple[str, str], ...]


class Failed(Protocol):
    """A failed call, of either kind of gRPC."""

    def code(self) -> StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Any: ...


def seconds(timeout: float) -> float:
    """What gRPC is given as the timeout of a call: an hour at most, as servers have it. Raises
    InvalidRequestError if it is NaN.
    """
    if math.isnan(timeout):
        raise InvalidRequestError(Violation("timeout", "nan is no number of seconds"))
    return min(timeout, LONGEST)


def caller(name: str) -> Metadata:
    """Metadata that tells a front node whose question it is, so that it shares fairly. Raises
    InvalidRequestError if front nodes would not take the name.
    """
    sent = ((client_key.KEY, name),) if name else ()
    if client_key.of_metadata(sent) != name:
        raise InvalidRequestError(
            Violation("client_name", f"{quoted(name)} is not 1 to 64 letters, digits or ._:@-")
        )
    return sent


def identified(given: str | None) -> Metadata:
    """Metadata with the request id, a new one if none is given. Raises InvalidRequestError if front
    nodes would not take the id.
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
    sent = {key: value for key, value in trailing or () if key == _DETAILS}
    if code is StatusCode.INVALID_ARGUMENT and (violations := _violations(sent)):
        return InvalidRequestError(*violations)
    if code is StatusCode.UNAVAILABLE and not sent:
        hint = next((hint for said, hint in _HINTS if said in details), _STARTS)
        return UnavailableError(
            f"cannot reach a front node at {address}; {hint} ({_last(details)})"
        )
    if code is StatusCode.DEADLINE_EXCEEDED and not sent:
        return DeadlineExceededError(f"no reply from {address} within {timeout:g} s")
    if code is StatusCode.UNIMPLEMENTED:
        return NotServedError(
            f"{address} does not serve this: a front needs --shards to answer, --heads to "
            f"predict, --feed-listen (a port of its own) to be fed ({details})"
        )
    return error_of(code, details, trailing)


def _last(details: str) -> str:
    """What went wrong, without what gRPC says before it of addresses that were tried."""
    return details.rpartition("Failed to connect to remote host: ")[2]


def _violations(sent: dict[str, bytes]) -> list[Violation]:
    found, bad = [], error_details_pb2.BadRequest()
    try:
        for packed in status_pb2.Status.FromString(sent.get(_DETAILS, b"")).details:
            if packed.Unpack(bad):
                found += [Violation(v.field, v.description) for v in bad.field_violations]
    except DecodeError:
        return []
    return found
