"""Headers of requests, as pairs of texts like gRPC metadata, and headers of replies."""

import asyncio
import re
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import TypeVar

from winnow.deadline import MAX_SECONDS, Deadline
from winnow.errors import DeadlineExceededError, InvalidRequestError, Violation
from winnow.quoting import quoted
from winnow.stateless.http.call import NewDeadline

Headers = tuple[tuple[str, str], ...]

ALWAYS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Headers of every reply that does not set its own."""


def text_of(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of an ASGI request as texts; their names are in lower case."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


def find(headers: Headers, name: str) -> str:
    """The first value of a header; empty if there is none."""
    return next((value for key, value in headers if key == name), "")


TIMEOUT = "x-winnow-timeout"
"""The header with the seconds that a request may take, such as 0.5."""
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")
Result = TypeVar("Result")


def new_deadline_of(headers: Headers, default: float) -> NewDeadline:
    """The deadline that a request's header sets, counted from now. Without the header, each call
    of the request has `default` seconds from its start.

    Raises:
        InvalidRequestError: the header has no number of seconds above 0.

    """
    given = find(headers, TIMEOUT)
    if not given:
        return partial(Deadline.after, default)
    seconds = float(given) if _SECONDS.fullmatch(given) else 0.0
    if not seconds:
        wrong = f"{quoted(given)} is no number of seconds above 0, such as 0.5"
        raise InvalidRequestError(Violation(TIMEOUT, wrong))
    deadline = Deadline.after(min(seconds, MAX_SECONDS))
    return lambda: deadline


async def in_time(work: Awaitable[Result], deadline: Deadline) -> Result:
    """The result of work, which is cancelled at the deadline; gRPC does so by itself.

    Raises:
        DeadlineExceededError: the work was not done in time.

    """
    left = asyncio.timeout(max(deadline.left(), 0.0))
    try:
        async with left:
            return await work
    except TimeoutError:
        if not left.expired():
            raise
        raise DeadlineExceededError("the deadline passed before there was a reply") from None
