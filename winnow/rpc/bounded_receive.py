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
"""A message of a megabyte takes as long at a megabit a second."""
_ENDS = "this server is about to end: send what it has not acknowledged again"
_CLOSING = 0.05
"""Seconds that gRPC may take to tell that a call was given up by its caller, and has not ended."""


class BoundedReceive:
    """Messages of which a part may be missing."""

    def __init__(self, most: int, seconds: float = _SECONDS) -> None:
        """`most`: messages on their way at once, `seconds`: that one may take."""
        self._most, self._seconds = most, seconds
        self._waiting: dict[asyncio.Future[WinnowError | None], float] = {}
        """What ends the wait for each, and when it is late; the oldest first."""
        self._timer: asyncio.TimerHandle | None = None
        """Of the oldest: one for each message would take longer than the message itself."""
        self._of_streams: set[asyncio.Future[WinnowError | None]] = set()
        """Those of `_waiting` that may be followed by more."""
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
        """The next message of such a call, or `grpc.aio.EOF`; raises as `message` does else.

        A call that its caller gave up is cancelled, and is not taken for one that has ended.

        `lease`: of a stream, which has no end of its own.

        Raises UnavailableError if the server ends, and more might follow. Raises WinnowError if the
        lease has ended; what it says.
        """
        if lease is not None:
            self.expect(lease)
        # never cancelled: gRPC writes to what a cancelled read has freed
        reading = asyncio.ensure_future(context.read())
        place = self._place()
        reading.add_done_callback(partial(_arrived, place))
        if lease is not None:
            self._of_streams.add(place)
            lease.tell(partial(_give_up, place))
        try:
            late = await place
        finally:
            self._waiting.pop(place, None)
            self._of_streams.discard(place)
        if late is not None:
            raise late
        message = reading.result()
        if message is grpc.aio.EOF:
            await asyncio.sleep(_CLOSING)
        return message

    def leave(self) -> None:
        """Ends streams where they stand: one might go on for longer than the server may."""
        self._leaving = True
        for place in self._of_streams:
            _give_up(place, UnavailableError(_ENDS))

    def expect(self, lease: Lease) -> None:
        """Raises what ends a stream, if something does."""
        if self._leaving:
            raise UnavailableError(_ENDS)
        if lease.ended is not None:
            raise lease.ended

    def _place(self) -> "asyncio.Future[WinnowError | None]":
        """For one more message; the wait that lasts longest ends if there are too many: whole
        messages are here with their calls.
        """
        loop = asyncio.get_running_loop()
        place: asyncio.Future[WinnowError | None] = loop.create_future()
        self._waiting[place] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)
        if len(self._waiting) > self._most:
            self._end(OverloadedError("too many messages are on their way; send it again, at once"))
        return place

    def _look(self) -> None:
        """Ends the waits that last too long."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._waiting and self._timer is None:
            due = next(iter(self._waiting.values()))
            if due > loop.time():
                self._timer = loop.call_at(due, self._look)
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
    """Ends the wait for a message; takes note of an error of a read that nobody waits for any more:
    its call was ended.
    """
    if not reading.cancelled():
        reading.exception()
    if not place.done():
        place.set_result(None)


_LONGEST_PAUSE = 1.0
"""Seconds after which it is looked whether the stream may still go on."""


class Messages:
    """An iterator over them. Nothing is read before it is asked for.

    It raises what is wrong with a message, or with its coming late; then the call is over.
    """

    def __init__(self, arrivals: BoundedReceive, context: Any, lease: Lease | None = None) -> None:
        """`lease`: how long the stream may go on, and how soon its next message may come."""
        self._arrivals, self._context, self._lease = arrivals, context, lease or Lease()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await self._turn()
        message = await self._arrivals.next(self._context, self._lease)
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, WinnowError):
            raise message
        return message

    async def _turn(self) -> None:
        """Waits until its rate allows another message."""
        while pause := self._lease.pause():
            self._arrivals.expect(self._lease)
            await asyncio.sleep(min(pause, _LONGEST_PAUSE))
