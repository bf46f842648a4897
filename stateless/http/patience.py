"""How long a request may take: what its caller says, or what the front says else."""

import asyncio
import re
from collections.abc import Awaitable
from functools import partial
from typing import TypeVar

from winnow.deadline import LONGEST, Deadline
from winnow.errors import DeadlineExceededError, InvalidRequestError, Violation
from winnow.quoting import quoted
from winnow.stateless.http.call import Until
from winnow.stateless.http.headers import Headers, find

TIMEOUT = "x-winnow-timeout"
"""The header with the seconds that a request may take, such as 0.5."""
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")
Result = TypeVar("Result")


def until_of(headers: Headers, default: float) -> Until:
    """The deadline of all that a request needs, from now on; without a header, `default` seconds
    for each thing that is begun.

    Raises:
        InvalidRequestError: the header has no number of seconds above 0.

    """
    said = find(headers, TIMEOUT)
    if not said:
        return partial(Deadline.after, default)
    seconds = float(said) if _SECONDS.fullmatch(said) else 0.0
    if not seconds:
        wrong = f"{quoted(said)} is no number of seconds above 0, such as 0.5"
        raise InvalidRequestError(Violation(TIMEOUT, wrong))
    deadline = Deadline.after(min(seconds, LONGEST))
    return lambda: deadline


async def in_time(work: Awaitable[Result], deadline: Deadline) -> Result:
    """The result of work, which is cancelled at the deadline: gRPC does so by itself.

    Raises:
        DeadlineExceededError: it was not done in time.

    """
    left = asyncio.timeout(max(deadline.left(), 0.0))
    try:
        async with left:
            return await work
    except TimeoutError:
        if not left.expired():
            raise
        raise DeadlineExceededError("the deadline passed before there was a reply") from None
