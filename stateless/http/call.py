"""An operation of the HTTP interface: the mirror of a gRPC call."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from winnow.deadline import Deadline
from winnow.errors import WinnowError

NewDeadline = Callable[[], Deadline]
"""Returns the deadline of the request; without one, the default deadline from now."""


class LongReply(Protocol):
    """A response with answers that were serialised before."""

    def to_json(self) -> bytes:
        """The response as JSON. Call it in a thread: it may take long."""


Run = Callable[[Any, NewDeadline, str], Coroutine[Any, Any, Message | LongReply]]
"""Serves a call: `run(message, new_deadline, client)` returns the response."""
Refusal = Callable[[str], WinnowError | None]
"""A rule: returns the error of a client, by its key, or None to read its body."""

Gate = Callable[..., str]
"""Checks the key of a call: `gate(scope, headers, calls=1, begun=0)` returns the client key.

It raises a WinnowError if the key lacks the scope, or its rate limit forbids `calls` further calls
after the `begun` calls that were counted before.
"""

MAX_ESCAPED_BYTES = 2
"""Limit of the bytes of JSON for one byte of protobuf, with escapes like \\u00e4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOperation:
    """One path of the interface, with its method."""

    name: str
    """The gRPC call that the operation mirrors, as metrics and logs name it."""
    path: str
    about: str
    """Description of the operation for users, one or two sentences."""
    scope: str
    """The scope that a caller's key needs: ask, predict, feed or admin."""
    run: Run
    request: type[Message]
    response: type[Message]
    default_deadline: float
    """Seconds for a call without a deadline."""
    verb: str = "POST"
    """HTTP method. GET has its request in the query, POST in the body."""
    max_body_bytes: int = 0
    refusal: Refusal = lambda _client: None
    """The rule of early refusals, which is called before the body is read."""
    before_ready: bool = False
    """Whether the operation is served before the front is ready."""
    calls_of_request: Callable[[Any], int] = lambda _request: 1
    """Returns the number of calls of a request, for the rate limits of keys."""
