"""The messages of a stream that a client sends, as its handler reads them."""

import asyncio
from typing import Any, Self

import grpc

from winnow.errors import WinnowError
from winnow.lease import Lease
from winnow.rpc.bounded_receive import BoundedReceive

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
