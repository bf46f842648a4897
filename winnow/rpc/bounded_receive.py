"""Messages on their way: limits of the time that one may take and of how many are incomplete.

gRPC waits for a message as long as its connection lives, keeps the parts that have arrived, and
never answers a call that ends without a message. So the message of every call is read here, and the
memory of incomplete messages is bounded by their number and their size.
"""

import asyncio
from functools import partial
from typing import Any, Self

import grpc

from winnow.caller import Lease
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
    WinnowError,
)

_SECONDS = 10.0
"""A message of a megabyte takes about as long at a megabit a second."""
_ENDS = "this server is about to end: send what it has not acknowledged again"
_CLOSING = 0.05
"""Seconds that gRPC may take to report that the caller gave up a call that seems to have ended."""


class BoundedReceive:
    """Reads the messages of calls, within the limits."""

    def __init__(self, most: int, seconds: float = _SECONDS) -> None:
        """`most`: incomplete messages at once; `seconds`: time limit of each."""
        self._most, self._seconds = most, seconds
        self._waiting: dict[asyncio.Future[WinnowError | None], float] = {}
        """The future that ends each wait, and the time when it is late; the oldest first."""
        self._timer: asyncio.TimerHandle | None = None
        """The timer of the oldest wait: one for each message would cost more than the message."""
        self._streams: set[asyncio.Future[WinnowError | None]] = set()
        """The waits in `_waiting` for messages of streams."""
        self._leaving = False

    async def message(self, context: Any) -> Any:
        """The first message of a call whose handler was declared as one of a stream. Raises
        InvalidRequestError if the call has ended without one. Raises DeadlineExceededError if it
        took too long. Raises OverloadedError if too many others are on their way, and this is the
        oldest.
        """
        message = await self.next(context)
        if message is grpc.aio.EOF:
            raise InvalidRequestError(Violation("request", "the call ended without a message"))
        return message

    async def next(self, context: Any, lease: Lease | None = None) -> Any:
        """The next message of such a call, or `grpc.aio.EOF`. Raises as `message` does.

        A call that its caller gave up is cancelled; it does not look like an ended call.

        `lease`: the lease of a stream. Raises the error of an ended lease, or UnavailableError if
        the server ends and more messages might follow.
        """
        if lease is not None:
            self.expect(lease)
        # never cancelled: gRPC writes to what a cancelled read has freed
        reading = asyncio.ensure_future(context.read())
        place = self._add()
        reading.add_done_callback(partial(_arrived, place))
        if lease is not None:
            self._streams.add(place)
            lease.tell(partial(_give_up, place))
        try:
            late = await place
        finally:
            self._waiting.pop(place, None)
            self._streams.discard(place)
        if late is not None:
            raise late
        message = reading.result()
        if message is grpc.aio.EOF:
            await asyncio.sleep(_CLOSING)
        return message

    def leave(self) -> None:
        """Ends all streams: a stream might last longer than the server may."""
        self._leaving = True
        for place in self._streams:
            _give_up(place, UnavailableError(_ENDS))

    def expect(self, lease: Lease) -> None:
        """Raises the error that ends the stream of a lease, if there is one."""
        if self._leaving:
            raise UnavailableError(_ENDS)
        if lease.ended is not None:
            raise lease.ended

    def _add(self) -> "asyncio.Future[WinnowError | None]":
        """Adds the wait for a message, and ends the longest wait if there are too many.

        The longest wait is for an incomplete message: a whole one arrives with its call.
        """
        loop = asyncio.get_running_loop()
        place: asyncio.Future[WinnowError | None] = loop.create_future()
        self._waiting[place] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end_late)
        if len(self._waiting) > self._most:
            self._end(OverloadedError("too many messages are on their way; send it again, at once"))
        return place

    def _end_late(self) -> None:
        """Ends the waits that are late."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._waiting and self._timer is None:
            due = next(iter(self._waiting.values()))
            if due > loop.time():
                self._timer = loop.call_at(due, self._end_late)
            else:
                self._end(
                    DeadlineExceededError(
                        f"the message was not here {self._seconds:g} seconds after its call, or "
                        "after the message before it"
                    )
                )

    def _end(self, why: WinnowError) -> None:
        """Ends the oldest wait."""
        place = next(iter(self._waiting))
        del self._waiting[place]
        _give_up(place, why)


def _give_up(place: "asyncio.Future[WinnowError | None]", why: WinnowError) -> None:
    if not place.done():
        place.set_result(why)


def _arrived(place: "asyncio.Future[WinnowError | None]", reading: "asyncio.Future[Any]") -> None:
    """Ends the wait for a message.

    Retrieves the exception of a read whose call was ended, so that asyncio does not warn about it.
    """
    if not reading.cancelled():
        reading.exception()
    if not place.done():
        place.set_result(None)


_LONGEST_PAUSE = 1.0
"""Seconds after which a pausing stream checks whether it may go on."""


class Messages:
    """An iterator over the messages of a stream, which reads a message when it is asked for it.

    It raises the error of a message that is invalid or late; then the call is over.
    """

    def __init__(self, receive: BoundedReceive, context: Any, lease: Lease | None = None) -> None:
        """`lease` says how long the stream may go on, and when its next message may come."""
        self._receive, self._context, self._lease = receive, context, lease or Lease()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await self._pause()
        message = await self._receive.next(self._context, self._lease)
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, WinnowError):
            raise message
        return message

    async def _pause(self) -> None:
        """Waits until the rate limit allows another message."""
        while pause := self._lease.pause():
            self._receive.expect(self._lease)
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
