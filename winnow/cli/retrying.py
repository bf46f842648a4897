"""Repeats a request of a command until it succeeds, and tells why on standard error."""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import typer

from winnow.deadline import Clock, Sleep
from winnow.errors import (
    DeadlineExceededError,
    NotLoadedError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)

_TRANSIENT = (OverloadedError, UnavailableError, DeadlineExceededError)
"""Errors that a retry may resolve."""
_PERMANENT = (NotServedError, NotLoadedError)
"""Subclasses of `_TRANSIENT` errors that no retry resolves."""
_FIRST_PAUSE, _MAX_PAUSE = 0.1, 5.0
"""Seconds between two attempts."""
_DOUBLINGS = 6
_MIN_ATTEMPT = 1.0
"""Minimum seconds of an attempt. A shorter one would fail by its deadline, and hide the reason."""
_MESSAGE_INTERVAL = 10.0
"""Minimum seconds between two messages about retries."""
Reply = TypeVar("Reply")


def backoff(attempt: int, chance: float, retry_after: float = 0.0) -> float:
    """Seconds to wait before the next attempt.

    Args:
        attempt: the number of failed attempts, from 1.
        chance: random number, 0 to 1, that spreads the retries of several requests.
        retry_after: seconds that the server demands.

    """
    pause = min(_FIRST_PAUSE * (1 << min(attempt, _DOUBLINGS)), _MAX_PAUSE)
    return retry_after + pause * (0.5 + chance / 2)


async def with_retries(
    request: Callable[[float], Awaitable[Reply]],
    *,
    patience: float,
    on_retry: Callable[[WinnowError], None],
    kinds: tuple[type[WinnowError], ...] = _TRANSIENT,
    sleep: Sleep = asyncio.sleep,
    clock: Clock = time.monotonic,
) -> Reply:
    """Sends a request until it succeeds, or until `patience` is over.

    Args:
        request: sends the request; gets the maximum seconds that it may take.
        patience: seconds in which the request must succeed; 0 to send it once, without a limit.
        on_retry: called with the error before a retry.
        kinds: the errors that are worth a retry.
        sleep: waits for a number of seconds.
        clock: returns the time in seconds.

    Raises the last error, and at once an error that retries cannot resolve.

    """
    limit = patience or math.inf
    began, attempt = clock(), 0
    while True:
        try:
            return await request(max(began + limit - clock(), _MIN_ATTEMPT))
        except kinds as error:
            if isinstance(error, _PERMANENT):
                raise
            attempt += 1
            retry_after = error.retry_after if isinstance(error, OverloadedError) else 0.0
            pause = backoff(attempt, random.random(), retry_after)
            if clock() + pause + _MIN_ATTEMPT - began > patience:
                raise
            on_retry(error)
        await sleep(pause)


class RetryMessages:
    """Tells why requests are repeated, at most every ten seconds."""

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        """`say` prints a line; None for standard error."""
        self._say = say or partial(typer.echo, err=True)
        self._printed_at = float("-inf")

    def show(self, error: WinnowError) -> None:
        """Prints why a request is repeated, unless another message was printed a moment ago."""
        if time.monotonic() - self._printed_at >= _MESSAGE_INTERVAL:
            self._printed_at = time.monotonic()
            self._say(f"trying again: {error}")
