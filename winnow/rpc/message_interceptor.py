"""Takes in the message of every call, before anything else is done for it.

An interceptor around all others. Handlers of Winnow's own services are given the message, or the
error that it is, which their boundary raises.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from winnow import caller
from winnow.errors import InvalidRequestError, Violation, WinnowError
from winnow.rpc.bounded_receive import BoundedReceive, Messages
from winnow.rpc.per_address import PerAddressLimit
from winnow.rpc.status import code_of

Metadata = Iterable[tuple[str, Any]] | None
Door = Callable[[str, Metadata], WinnowError | None]
"""Says by method and metadata why a call is refused before its message is read; None: it is not.

Reading the message is about a third of what a refused call takes.
"""


class MessageInterceptor(grpc.aio.ServerInterceptor):
    """Makes handlers of one message of those that are declared as handlers of a stream."""

    def __init__(
        self,
        arrivals: BoundedReceive,
        door: Door = lambda _method, _metadata: None,
        began: Callable[[Any], None] = lambda _context: None,
        crowd: PerAddressLimit | None = None,
    ) -> None:
        """`began` is told of every call, by its context; `crowd` limits those of a caller."""
        self._arrivals, self._door, self._began = arrivals, door, began
        self._crowd = crowd or PerAddressLimit(None)
        self._made: dict[str, Any] = {}
        """The handlers of the methods that there are: made once, not for every call."""
        self.calls = 0
        """Calls with one reply in hand."""
        self._none = asyncio.Event()
        self._none.set()

    async def idle(self) -> None:
        """Waits until no call with one reply is in hand; others are left to themselves."""
        await self._none.wait()

    def leave(self) -> None:
        """From now on streams of messages end with an error when the next message is wanted."""
        self._arrivals.leave()

    def _begin(self, context: Any) -> None:
        self.calls += 1
        self._none.clear()
        context.add_done_callback(self._end)

    def _end(self, _context: Any) -> None:
        self.calls -= 1
        if not self.calls:
            self._none.set()

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wraps the handlers of all methods, also those of health and reflection."""
        method = str(handler_call_details.method)
        made = self._made.get(method)
        if made is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            made = self._made[method] = self._wrapped(handler, method)
        return made

    def _wrapped(self, handler: Any, method: str) -> Any:
        if handler.stream_stream is not None:
            make, taking = (
                grpc.stream_stream_rpc_method_handler,
                self._talk(handler.stream_stream, method),
            )
        elif handler.response_streaming:
            make, taking = (
                grpc.stream_stream_rpc_method_handler,
                self._many(handler.unary_stream, method),
            )
        elif handler.request_streaming:
            make, taking = (
                grpc.stream_unary_rpc_method_handler,
                self._several(handler.stream_unary, method),
            )
        else:
            make, taking = (
                grpc.stream_unary_rpc_method_handler,
                self._one(handler.unary_unary, method),
            )
        return make(
            taking,
            request_deserializer=_tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )

    def _one(
        self, handler: Callable[[Any, Any], Awaitable[Any]], method: str
    ) -> Callable[..., Any]:
        bounded = method.startswith("/winnow.")

        async def call(_stream: Any, context: Any) -> Any:
            self._began(context)
            self._begin(context)
            request = self._refusal(method, context)
            if request is None:
                request = await self._request(context)
            if isinstance(request, WinnowError) and not bounded:
                await _abort(request, context)
            return await handler(request, context)

        return call

    def _several(
        self, handler: Callable[[Any, Any], Awaitable[Any]], method: str
    ) -> Callable[..., Any]:
        """The handler reads when it likes: what it does not read yet waits with the client."""

        async def call(_stream: Any, context: Any) -> Any:
            self._begin(context)
            if (refused := self._refusal(method, context)) is not None:
                return await handler(refused, context)
            with caller.held() as lease:
                return await handler(Messages(self._arrivals, context, lease), context)

        return call

    def _many(
        self, handler: Callable[[Any, Any], AsyncIterator[Any]], method: str
    ) -> Callable[..., Any]:
        async def call(_stream: Any, context: Any) -> AsyncIterator[Any]:
            self._began(context)
            request = self._refusal(method, context) or await self._request(context)
            if isinstance(request, WinnowError):
                await _abort(request, context)
            async for reply in handler(request, context):
                yield reply

        return call

    def _talk(
        self, handler: Callable[[Any, Any], AsyncIterator[Any]], method: str
    ) -> Callable[..., Any]:
        """Each message of a stream has the time, and takes the place, of a call's only message."""

        async def call(_stream: Any, context: Any) -> AsyncIterator[Any]:
            self._began(context)
            if (refused := self._refusal(method, context)) is not None:
                await _abort(refused, context)
            async for reply in handler(self._requests(context), context):
                yield reply

        return call

    async def _requests(self, context: Any) -> AsyncIterator[Any]:
        while True:
            try:
                request = await self._arrivals.next(context)
            except WinnowError as error:
                request = error
            if request is grpc.aio.EOF:
                return
            if isinstance(request, WinnowError):
                await _abort(request, context)
            yield request

    def _refusal(self, method: str, context: Any) -> WinnowError | None:
        """Why a call is refused before its message is read; None if it is not."""
        # the door first: it finds out whose key it is, and who has none is not counted
        refused = self._door(method, context.invocation_metadata())
        return refused or self._crowd.enter(method, context)

    async def _request(self, context: Any) -> Any:
        try:
            return await self._arrivals.message(context)
        except WinnowError as error:
            return error


async def _abort(error: WinnowError, context: Any) -> None:
    await context.abort(code_of(error), str(error))


def _tolerant(deserialise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Returns the error: raised, gRPC would answer INTERNAL for a client's mistake."""

    def parse(data: bytes) -> Any:
        try:
            return deserialise(data)
        except DecodeError as error:
            return InvalidRequestError(
                Violation(
                    "request", f"not a message of this method, or text that is not UTF-8 ({error})"
                )
            )

    return parse
