"""Requests on their way: how long a message may take, and how many may be half here.

gRPC waits for a message as long as its connection lives, keeps what has come of it, and never
answers a call that ends without one. So the message of every call is read here, and not by gRPC:
what memory half-sent messages take is bounded by their number and their size.
"""

import asyncio
from typing import Any

import grpc

from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    Violation,
)

_SECONDS = 10.0
"""A message of a megabyte takes as long at a megabit a second."""
_CLOSING = 0.05
"""Seconds that gRPC may take to tell that a call without a message was given up by its caller."""


class Arrivals:
    """Messages of which a part may be missing."""

    def __init__(self, most: int, seconds: float = _SECONDS) -> None:
        """`most`: messages on their way at once, `seconds`: that one may take."""
        self._most, self._seconds = most, seconds
        self._waiting: dict[asyncio.Future[None], None] = {}
        """What ends the wait for each, the oldest first."""

    async def message(self, context: Any) -> Any:
        """The first message of a call whose handler was declared as one of a stream.

        Raises:
            InvalidRequestError: the call has ended without one.
            DeadlineExceededError: it took too long.
            OverloadedError: too many others are on their way, and this is the oldest.

        """
        # never cancelled: gRPC writes to what a cancelled read has freed
        reading = asyncio.ensure_future(context.read())
        reading.add_done_callback(_look_at)
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[place] = None
        if len(self._waiting) > self._most:
            self._give_way()
        try:
            await asyncio.wait(
                (reading, place), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._waiting.pop(place, None)
        if not reading.done():
            raise self._late(place)
        message = reading.result()
        if message is grpc.aio.EOF:
            await asyncio.sleep(_CLOSING)
            raise InvalidRequestError(Violation("request", "the call ended without a message"))
        return message

    def _give_way(self) -> None:
        """Ends the wait that lasts longest: whole messages are here with their calls."""
        oldest = next(iter(self._waiting))
        del self._waiting[oldest]
        oldest.cancel()

    def _late(self, place: "asyncio.Future[None]") -> DeadlineExceededError | OverloadedError:
        if place.cancelled():
            return OverloadedError("too many messages are on their way; send it again, at once")
        return DeadlineExceededError(
            f"the message was not here {self._seconds:g} seconds after its call"
        )


def _look_at(reading: "asyncio.Future[Any]") -> None:
    """Takes note of an error of a read that nobody waits for any more: its call was ended."""
    if not reading.cancelled():
        reading.exception()
