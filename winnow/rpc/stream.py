"""The messages of a stream that a client sends, as its handler reads them."""

from typing import Any, Self

import grpc

from winnow.errors import WinnowError
from winnow.rpc.arrival import Arrivals


class Messages:
    """An iterator over them. Nothing is read before it is asked for.

    It raises what is wrong with a message, or with its coming late; then the call is over.
    """

    def __init__(self, arrivals: Arrivals, context: Any) -> None:
        self._arrivals, self._context = arrivals, context

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._arrivals.next(self._context, of_stream=True)
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        if isinstance(message, WinnowError):
            raise message
        return message
