"""An operation of the HTTP interface: the mirror of a gRPC call."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from winnow.deadline import Deadline
from winnow.errors import WinnowError

NewDeadline = Callable[[], Deadline]
"""The deadline of a call that begins now; that of the whole request, if its caller set one."""


class LongReply(Protocol):
    """A response whose answers are serialised already."""

    def text(self) -> bytes:
        """The response as JSON. Call it in a thread: it may take long."""


Run = Callable[[Any, NewDeadline, str], Coroutine[Any, Any, Message | LongReply]]
"""Serves a call: from a request message, its deadline and the client's key to the response."""
Refusal = Callable[[str], WinnowError | None]
"""Why a client is refused now, by its key; None if it is not."""

Gate = Callable[..., str]
"""`gate(scope, headers, calls=1, begun=0)` gives a caller's key, for fair sharing.

It raises a WinnowError if the caller lacks the scope, or may not make `calls` further calls beside
the `begun` ones that were counted before.
"""

ESCAPED = 2
"""Most bytes of JSON for a byte of a protobuf message, as in escapes like \\u00e4."""


def _open(_client: str) -> WinnowError | None:
    return None


def _one(_request: object) -> int:
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOperation:
    """One path of the interface, with its method."""

    name: str
    """The gRPC call that it mirrors, as metrics and logs name it."""
    path: str
    about: str
    """Its description, in a sentence or two."""
    scope: str
    """The scope that a caller's key needs: ask, predict, feed or admin."""
    run: Run
    request: type[Message]
    response: type[Message]
    seconds: float
    """Longest time for a caller that sets no deadline."""
    verb: str = "POST"
    """GET takes its request from the query, POST from a body."""
    largest: int = 0
    """Most bytes of a body."""
    refusal: Refusal = _open
    """Is called before the body is read."""
    early: bool = False
    """Whether it is of use before the front is ready."""
    calls: Callable[[Any], int] = _one
    """Number of calls that a request counts as, for the rate limits of keys."""
