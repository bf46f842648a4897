"""An operation of the HTTP interface, which mirrors a gRPC call."""

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from winnow.deadline import Deadline
from winnow.stateless.early_rejection import Refusal

NewDeadline = Callable[[], Deadline]
"""Returns the deadline of the request. If the caller sets none, returns the default deadline,
counted from now.
"""


class LongReply(Protocol):
    """A response that contains answers in serialised form."""

    def to_json(self) -> bytes:
        """Returns the response as JSON. Call it in a thread, because it may take long."""


@dataclass(frozen=True, slots=True)
class LinesReply:
    """A response of JSON lines, which is sent while it is made."""

    parts: AsyncIterator[bytes]
    """The lines, in parts of any size. An error after the first part ends the connection."""


Run = Callable[[Any, NewDeadline, str], Coroutine[Any, Any, Message | LongReply | LinesReply]]
"""Serves a call: `run(message, new_deadline, client)` returns the response."""

Gate = Callable[..., str]
"""Checks the key of a call: `gate(scope, headers, calls=1, begun=0, others=())` returns the client
key.

It raises a WinnowError if the key lacks the scope and all `others`, or if its rate limit forbids
`calls` calls in addition to the `begun` calls of this request that were already counted.
"""

LINES_TYPE = "application/x-ndjson"
"""Media type of JSON lines."""
MAX_ESCAPED_BYTES = 2
"""Maximum bytes of JSON for one byte of protobuf, with escapes like \\u00e4."""


@dataclass(frozen=True, slots=True)
class OperationLimits:
    """When the calls of a service are given up or refused."""

    default_deadline: float
    """Deadline in seconds of a call whose caller sets none."""
    refusal: Refusal = lambda _client: None
    """Refuses requests of a client before the body is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOperation:
    """One path of the interface, with its method."""

    name: str
    """Name of the gRPC call that the operation mirrors, also in metrics and logs."""
    path: str
    about: str
    """Description of the operation for users. Its first sentence is the summary."""
    scope: str
    """The scope that a caller's key needs: ask, read, predict, feed or admin."""
    run: Run
    request: type[Message]
    response: type[Message]
    limits: OperationLimits
    verb: str = "POST"
    """HTTP method. GET has its request in the query, POST in the body."""
    max_body_bytes: int = 0
    """Maximum size of the body, in bytes."""
    is_stream: bool = False
    """Whether the reply is a `LinesReply`: each line is a JSON object."""
    ignores_unknown_fields: bool = False
    """Whether a request may have fields that its message lacks."""
    before_ready: bool = False
    """Whether the operation is served before the front is ready."""
    of_all_tenants: bool = False
    """Whether the reply tells something of all tenants. Requests whose header names one are then
    refused: a proxy may set the header to limit its callers.
    """
    calls_of_request: Callable[[Any], int] = lambda _request: 1
    """Returns how many calls a request counts as in the rate limits of keys."""
