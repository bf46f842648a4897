"""Reads headers of requests, and has the default headers of replies.

Headers are pairs of texts, like gRPC metadata.
"""

import asyncio
import re
from collections.abc import Awaitable, Iterable
from functools import partial
from typing import TypeVar

from winnow.deadline import MAX_SECONDS, Deadline
from winnow.errors import DeadlineExceededError, invalid_field
from winnow.quoting import quoted
from winnow.stateless.http.call import NewDeadline

Headers = tuple[tuple[str, str], ...]

DEFAULT_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
"""Default headers of every reply."""


def text_of(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Converts the headers of an ASGI request to texts. Names are in lower case."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in raw)


def header_value(headers: Headers, name: str) -> str:
    """The first value of a header; empty if the header is missing."""
    return next((value for key, value in headers if key == name), "")


TIMEOUT_HEADER = "x-winnow-timeout"
"""Name of the header with the seconds that a request may take, such as 0.5."""
TENANT_HEADER = "x-winnow-tenant"
"""Name of the header with the tenant of a request, for callers whose key is of no tenant."""
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")
Result = TypeVar("Result")


def tenant_of(headers: Headers) -> str:
    """The tenant that the tenant header names; empty without the header.

    Raises:
        InvalidRequestError: the header occurs with two values, as behind a proxy that adds its own
            without removing that of the caller.

    """
    values = {value for name, value in headers if name == TENANT_HEADER}
    if len(values) > 1:
        raise invalid_field(TENANT_HEADER, "occurs with two values: send it once")
    return next(iter(values), "")


def new_deadline_of(headers: Headers, default: float) -> NewDeadline:
    """Returns a function that returns the deadline of each call of a request.

    The timeout header sets one deadline for the whole request, counted from now. Without this
    header, each call has `default` seconds from its start.

    Raises:
        InvalidRequestError: the timeout header is not a number of seconds above 0, or too large.

    """
    value = header_value(headers, TIMEOUT_HEADER)
    if not value:
        return partial(Deadline.after, default)
    seconds = float(value) if _SECONDS.fullmatch(value) else 0.0
    if not seconds:
        rule = "is not a number of seconds above 0 and below 1000000000, such as 0.5"
        raise invalid_field(TIMEOUT_HEADER, f"{quoted(value)} {rule}")
    deadline = Deadline.after(min(seconds, MAX_SECONDS))
    return lambda: deadline


async def before_deadline(work: Awaitable[Result], deadline: Deadline) -> Result:
    """Returns the result of `work`; cancels it at the deadline, as gRPC does.

    Raises:
        DeadlineExceededError: the deadline passed.

    """
    timeout = asyncio.timeout(max(deadline.left(), 0.0))
    try:
        async with timeout:
            return await work
    except TimeoutError:
        if not timeout.expired():
            raise
        raise DeadlineExceededError("the deadline passed before there was a reply") from None
