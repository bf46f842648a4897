"""Receives the message of every call, before anything else is done for the call.

This interceptor is around all others. Handlers of Winnow's own services are given the message, or
the error in its place, which `CallInterceptor` raises.
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
Reject = Callable[[str, Metadata], WinnowError | None]
"""Returns, by method and metadata, the error that rejects a call before its message is read.

Reading the message is about a third of the cost of a rejected call.
"""
_Handler = Callable[..., Any]


class MessageInterceptor(grpc.aio.ServerInterceptor):
    """Declares every handler to gRPC as one of a stream, and reads the messages itself."""

    def __init__(
        self,
        receive: BoundedReceive,
        reject: Reject = lambda _method, _metadata: None,
        began: Callable[[Any], None] = lambda _context: None,
        limit: PerAddressLimit | None = None,
    ) -> None:
        """`began` is called with the context of every call; `limit` is that of each caller."""
        self._receive, self._reject, self._began = receive, reject, began
        self._limit = limit or PerAddressLimit(None)
        self._wrapped: dict[str, Any] = {}
        """The handlers by their methods: wrapped once, not for every call."""
        self.calls = 0
        """Calls in hand that have one reply."""
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Waits until no call with one reply is in hand; streams of replies do not count."""
        await self._idle.wait()

    def leave(self) -> None:
        """From now on streams of messages end with an error at their next message."""
        self._receive.leave()

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wraps the handlers of all methods, those of health and reflection included."""
        method = str(handler_call_details.method)
        wrapped = self._wrapped.get(method)
        if wrapped is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            wrapped = self._wrapped[method] = self._wrap(handler, method)
        return wrapped

    def _wrap(self, handler: Any, method: str) -> Any:
        if handler.response_streaming:
            make = grpc.stream_stream_rpc_method_handler
            if handler.request_streaming:
                call = self._stream_stream(handler.stream_stream, method)
            else:
                call = self._unary_stream(handler.unary_stream, method)
        else:
            make = grpc.stream_unary_rpc_method_handler
            if handler.request_streaming:
                call = self._stream_unary(handler.stream_unary, method)
            else:
                call = self._unary_unary(handler.unary_unary, method)
        return make(
            call,
            request_deserializer=_tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )

    def _unary_unary(self, handler: _Handler, method: str) -> _Handler:
        own = method.startswith("/winnow.")

        async def call(_stream: Any, context: Any) -> Any:
            self._began(context)
            self._count(context)
            request = self._rejection(method, context) or await self._request(context)
            if isinstance(request, WinnowError) and not own:
                await _abort(request, context)
            return await handler(request, context)

        return call

    def _stream_unary(self, handler: _Handler, method: str) -> _Handler:
        """The handler reads when it is ready: until then messages wait on the client's side."""

        async def call(_stream: Any, context: Any) -> Any:
            self._count(context)
            if (rejection := self._rejection(method, context)) is not None:
                return await handler(rejection, context)
            with caller.held() as lease:
                return await handler(Messages(self._receive, context, lease), context)

        return call

    def _unary_stream(self, handler: _Handler, method: str) -> _Handler:
        async def call(_stream: Any, context: Any) -> AsyncIterator[Any]:
            self._began(context)
            request = self._rejection(method, context) or await self._request(context)
            if isinstance(request, WinnowError):
                await _abort(request, context)
            async for reply in handler(request, context):
                yield reply

        return call

    def _stream_stream(self, handler: _Handler, method: str) -> _Handler:
        """Each message of a stream has the time limit and the place of a call's only message."""

        async def call(_stream: Any, context: Any) -> AsyncIterator[Any]:
            self._began(context)
            if (rejection := self._rejection(method, context)) is not None:
                await _abort(rejection, context)
            async for reply in handler(self._requests(context), context):
                yield reply

        return call

    async def _requests(self, context: Any) -> AsyncIterator[Any]:
        while True:
            try:
                request = await self._receive.next(context)
            except WinnowError as error:
                request = error
            if request is grpc.aio.EOF:
                return
            if isinstance(request, WinnowError):
                await _abort(request, context)
            yield request

    def _rejection(self, method: str, context: Any) -> WinnowError | None:
        """The error that rejects a call before its message is read; None if nothing does."""
        # this binds the caller by its key, and a caller without a good key is not counted
        rejection = self._reject(method, context.invocation_metadata())
        return rejection or self._limit.enter(method, context)

    async def _request(self, context: Any) -> Any:
        try:
            return await self._receive.message(context)
        except WinnowError as error:
            return error

    def _count(self, context: Any) -> None:
        self.calls += 1
        self._idle.clear()
        context.add_done_callback(self._uncount)

    def _uncount(self, _context: Any) -> None:
        self.calls -= 1
        if not self.calls:
            self._idle.set()


async def _abort(error: WinnowError, context: Any) -> None:
    await context.abort(code_of(error), str(error))


def _tolerant(deserialise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Returns the error instead of raising it: gRPC would answer a client's mistake by INTERNAL."""

    def parse(data: bytes) -> Any:
        try:
            return deserialise(data)
        except DecodeError as error:
            problem = f"not a message of this method, or text that is not UTF-8 ({error})"
            return InvalidRequestError(Violation("request", problem))

    return parse
