"""A call that a front takes by HTTP: the mirror of a gRPC call."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from winnow.deadline import Deadline
from winnow.errors import WinnowError

Until = Callable[[], Deadline]
"""The deadline of what is begun now: of the whole request, if its caller set one."""


class LongReply(Protocol):
    """A response of which only parts are messages."""

    def text(self) -> bytes:
        """Its JSON. May take long: to be called in a thread."""


Run = Callable[[Any, Until, str], Coroutine[Any, Any, Message | LongReply]]
"""From a request message, its deadline and the key of its client to the response."""
Refusal = Callable[[str], WinnowError | None]
"""Why a client is refused now, by its key; None if it is not."""

ESCAPED = 2
"""Bytes that JSON takes for one of a protobuf message, at most: as escapes such as \\u00e4."""


def _open(_client: str) -> WinnowError | None:
    return None


def _one(_request: object) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class HttpOperation:
    """One path of the interface."""

    name: str
    """The gRPC call that it mirrors, as metrics and logs name it."""
    verb: str
    """GET takes its request from the query, POST from a body."""
    path: str
    about: str
    """What it does, in a sentence or two."""
    scope: str
    """What its caller must be allowed to do: ask, predict, feed or admin."""
    run: Run
    request: type[Message]
    response: type[Message]
    seconds: float
    """That it may take if its caller does not say."""
    largest: int = 0
    """Bytes of a body."""
    refusal: Refusal = _open
    """Asked before the body is read."""
    early: bool = False
    """Whether it is of use before the front is ready."""
    calls: Callable[[Any], int] = _one
    """For how many calls a request counts, where callers may only make so many."""
