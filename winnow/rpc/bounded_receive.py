"""Receives messages within limits: the time for one message, and the number of incomplete messages.

Without these limits, gRPC waits for a message as long as the connection lasts, and keeps the parts
that have arrived. It also never answers a call that ends without a message. So this module reads
the message of every call. The memory of incomplete messages is bounded by their number and their
maximum size.
"""

import asyncio
from functools import partial
from typing import Any, Self

import grpc

from winnow.caller import Lease
from winnow.errors import (
    DeadlineExceededError,
    OverloadedError,
    UnavailableError,
    WinnowError,
    invalid_field,
)

_MESSAGE_SECONDS = 10.0
"""Time limit of a message. A megabyte takes about this long at one megabit per second."""
_SHUTDOWN_MESSAGE = "this server is shutting down: send the unacknowledged messages again"
CANCEL_SECONDS = 0.05
"""Seconds within which gRPC cancels the task of a call that its caller has left.

Before that, a read seems to be at the end of the messages, and a write fails.
"""


class BoundedReceive:
    """Reads the messages of calls, within limits of time and number of incomplete messages."""

    def __init__(self, max_incomplete: int, seconds: float = _MESSAGE_SECONDS) -> None:
        """`max_incomplete`: limit of incomplete messages; `seconds`: time limit of each message."""
        self._max_incomplete, self._seconds = max_incomplete, seconds
        self._waits: dict[asyncio.Future[WinnowError | None], float] = {}
        """The future of each awaited message, and its deadline; the oldest first."""
        self._timer: asyncio.TimerHandle | None = None
        """The timer of the oldest wait. One timer per message would cost more than the read."""
        self._stream_waits: set[asyncio.Future[WinnowError | None]] = set()
        """The waits in `_waits` for messages of streams."""
        self._shutting_down = False

    async def first_message(self, context: Any) -> Any:
        """Reads the first message of a call, whose handler must be declared to gRPC as streaming.

        Raises:
            InvalidRequestError: the call ended without a message.
            DeadlineExceededError: the message was incomplete after the time limit.
            OverloadedError: too many messages are incomplete, and this one is the oldest.

        """
        message = await self.next_message(context)
        if message is grpc.aio.EOF:
            raise invalid_field("request", "the call ended without a message")
        return message

    async def next_message(self, context: Any, lease: Lease | None = None) -> Any:
        """Reads the next message of a call; returns `grpc.aio.EOF` after the last one.

        Raises the errors of `first_message`. If the caller cancelled the call, this coroutine is
        cancelled instead of returning `EOF`.

        `lease`: the lease of a stream. If it has ended, raises its error. If the server shuts down,
        raises UnavailableError.
        """
        if lease is not None:
            self.check_lease(lease)
        # must not be cancelled: gRPC would write to memory that the cancelled read has freed
        reading = asyncio.ensure_future(context.read())
        wait = self._start_wait()
        reading.add_done_callback(partial(_finish, wait))
        if lease is not None:
            self._stream_waits.add(wait)
            lease.on_end(partial(_fail, wait))
        try:
            error = await wait
        finally:
            self._waits.pop(wait, None)
            self._stream_waits.discard(wait)
        if error is not None:
            raise error
        message = reading.result()
        if message is grpc.aio.EOF:
            await asyncio.sleep(CANCEL_SECONDS)
        return message

    def end_streams(self) -> None:
        """Ends all streams with an error, because they might outlast the shutdown of the server."""
        self._shutting_down = True
        for wait in self._stream_waits:
            _fail(wait, UnavailableError(_SHUTDOWN_MESSAGE))

    def check_lease(self, lease: Lease) -> None:
        """Raises an error if the lease has ended or the server is shutting down."""
        if self._shutting_down:
            raise UnavailableError(_SHUTDOWN_MESSAGE)
        if lease.end_error is not None:
            raise lease.end_error

    def _start_wait(self) -> "asyncio.Future[WinnowError | None]":
        """Adds a wait for a message. If there are too many, fails the oldest wait.

        The oldest wait is for an incomplete message, because a complete message arrives with its
        call.
        """
        loop = asyncio.get_running_loop()
        wait: asyncio.Future[WinnowError | None] = loop.create_future()
        self._waits[wait] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end_overdue)
        if len(self._waits) > self._max_incomplete:
            self._end_oldest(
                OverloadedError("too many incomplete messages; send this one again, without pauses")
            )
        return wait

    def _end_overdue(self) -> None:
        """Fails the waits whose time limit has passed."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._waits and self._timer is None:
            due = next(iter(self._waits.values()))
            if due > loop.time():
                self._timer = loop.call_at(due, self._end_overdue)
            else:
                self._end_oldest(
                    DeadlineExceededError(
                        f"the message was incomplete after {self._seconds:g} seconds; send each "
                        "message within that time"
                    )
                )

    def _end_oldest(self, error: WinnowError) -> None:
        """Fails the oldest wait."""
        wait = next(iter(self._waits))
        del self._waits[wait]
        _fail(wait, error)


def _fail(wait: "asyncio.Future[WinnowError | None]", error: WinnowError) -> None:
    if not wait.done():
        wait.set_result(error)


def _finish(wait: "asyncio.Future[WinnowError | None]", reading: "asyncio.Future[Any]") -> None:
    """Ends a wait when its read has ended.

    Retrieves the exception of the read, so that asyncio does not warn about it.
    """
    if not reading.cancelled():
        reading.exception()
    if not wait.done():
        wait.set_result(None)


_MAX_PAUSE = 1.0
"""Seconds after which a paused stream checks its lease again."""


class MessageStream:
    """An iterator over the messages of a stream. Reads each message when it is requested.

    Raises the error of an invalid or late message, which ends the call.
    """

    def __init__(self, receive: BoundedReceive, context: Any, lease: Lease | None = None) -> None:
        """`lease` limits the duration of the stream and the rate of its messages."""
        self._receive, self._context, self._lease = receive, context, lease or Lease()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await self._await_rate_limit()
        message = await self._receive.next_message(self._context, self._lease)
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, WinnowError):
            raise message
        return message

    async def _await_rate_limit(self) -> None:
        """Waits until the rate limit allows another message."""
        while pause := self._lease.pause():
            self._receive.check_lease(self._lease)
            await asyncio.sleep(min(pause, _MAX_PAUSE))
