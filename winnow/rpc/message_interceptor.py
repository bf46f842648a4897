"""Receives the message of every call before the call is processed.

This is the outermost interceptor. Handlers of Winnow's own services get the message, or an error in
its place, which `CallInterceptor` raises.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from winnow import caller
from winnow.errors import WinnowError, invalid_field
from winnow.rpc.bounded_receive import CANCEL_SECONDS, BoundedReceive, MessageStream
from winnow.rpc.per_address import PerAddressLimit
from winnow.rpc.status import code_of

Metadata = Iterable[tuple[str, Any]] | None
Reject = Callable[[str, Metadata], WinnowError | None]
"""Returns the error that rejects a call before its message is read, or None to accept the call.

Takes the method and the metadata. Reading the message would be about a third of the cost of a
rejected call.
"""
_Handler = Callable[..., Any]
_CLEANUP_SECONDS = 1.0
"""Maximum seconds to wait for the handlers of cancelled calls.

The chart kills a process two seconds after its linger and grace times (`winnow.grace`).
"""


class MessageInterceptor(grpc.aio.ServerInterceptor):
    """Declares every handler to gRPC as streaming, and reads the messages itself."""

    def __init__(
        self,
        receive: BoundedReceive,
        reject: Reject = lambda _method, _metadata: None,
        on_call: Callable[[Any], None] = lambda _context: None,
        limit: PerAddressLimit | None = None,
    ) -> None:
        """`on_call`: called with the context of each call; `limit`: limit of calls per caller."""
        self._receive, self._reject, self._on_call = receive, reject, on_call
        self._limit = limit or PerAddressLimit(None)
        self._wrapped: dict[str, Any] = {}
        """The wrapped handler of each method, because wrapping it for every call would be slow."""
        self.running_calls = 0
        """Number of running calls that a shutdown waits for.

        These are all calls but health watches and reflection, whose replies have no end.
        """
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: set[asyncio.Task[Any]] = set()
        """The task of each call, which ends after the handler has cleaned up."""

    async def wait_until_idle(self) -> None:
        """Waits until `running_calls` is zero."""
        await self._idle.wait()

    async def wait_for_handlers(self) -> None:
        """Waits until the handlers of all calls have ended, but at most `_CLEANUP_SECONDS`.

        gRPC has stopped when all calls are cancelled, but their handlers may still clean up. If the
        event loop ended meanwhile, gRPC would log their cancellation as an unexpected exception.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLEANUP_SECONDS)

    def end_streams(self) -> None:
        """Ends streams of messages with an error at their next message."""
        self._receive.end_streams()

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wraps the handlers of all methods, including health checks and reflection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
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
            request_deserializer=_returning_errors(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )

    def _unary_unary(self, handler: _Handler, method: str) -> _Handler:
        is_winnow = method.startswith("/winnow.")

        async def call(_stream: Any, context: Any) -> Any:
            self._on_call(context)
            self._count_call(context)
            request = self._rejection(method, context) or await self._request(context)
            if isinstance(request, WinnowError) and not is_winnow:
                await _abort(request, context)
            return await handler(request, context)

        return call

    def _stream_unary(self, handler: _Handler, method: str) -> _Handler:
        """Lets the handler read messages when it is ready; meanwhile they wait at the client."""

        async def call(_stream: Any, context: Any) -> Any:
            self._count_call(context)
            if (rejection := self._rejection(method, context)) is not None:
                return await handler(rejection, context)
            with caller.open_lease() as lease:
                return await handler(MessageStream(self._receive, context, lease), context)

        return call

    def _unary_stream(self, handler: _Handler, method: str) -> _Handler:
        is_winnow = method.startswith("/winnow.")

        async def call(_stream: Any, context: Any) -> None:
            self._on_call(context)
            if is_winnow:
                self._count_call(context)
            request = self._rejection(method, context) or await self._request(context)
            if isinstance(request, WinnowError) and not is_winnow:
                await _abort(request, context)
            await _send(handler(request, context), context)

        return call

    def _stream_stream(self, handler: _Handler, method: str) -> _Handler:
        """Applies the limits of a single message to each message of a stream."""

        async def call(_stream: Any, context: Any) -> None:
            self._on_call(context)
            if (rejection := self._rejection(method, context)) is not None:
                await _abort(rejection, context)
            await _send(handler(self._requests(context), context), context)

        return call

    async def _requests(self, context: Any) -> AsyncIterator[Any]:
        while True:
            try:
                request = await self._receive.next_message(context)
            except WinnowError as error:
                request = error
            if request is grpc.aio.EOF:
                return
            if isinstance(request, WinnowError):
                await _abort(request, context)
            yield request

    def _rejection(self, method: str, context: Any) -> WinnowError | None:
        """Returns the error that rejects a call before its message is read; None to accept it."""
        # `_reject` first: it binds the caller, and the limit must not count invalid keys
        rejection = self._reject(method, context.invocation_metadata())
        return rejection or self._limit.enter(method, context)

    async def _request(self, context: Any) -> Any:
        try:
            return await self._receive.first_message(context)
        except WinnowError as error:
            return error

    def _count_call(self, context: Any) -> None:
        self.running_calls += 1
        self._idle.clear()
        context.add_done_callback(self._uncount_call)

    def _uncount_call(self, _context: Any) -> None:
        self.running_calls -= 1
        if not self.running_calls:
            self._idle.set()


async def _send(replies: AsyncGenerator[Any, None], context: Any) -> None:
    """Sends the replies of a handler.

    If the call is cancelled meanwhile, the handler cleans up before the call ends. gRPC itself
    would leave the generator to the garbage collector.
    """
    async with aclosing(replies):
        async for reply in replies:
            try:
                await context.write(reply)
            except grpc.aio.InternalError:  # the caller has left
                # otherwise the cancellation by gRPC would interrupt the cleanup
                await asyncio.sleep(CANCEL_SECONDS)
                raise


async def _abort(error: WinnowError, context: Any) -> None:
    await context.abort(code_of(error), str(error))


def _returning_errors(deserialise: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Returns a parser that returns errors, because gRPC turns raised errors into INTERNAL."""

    def parse(data: bytes) -> Any:
        try:
            return deserialise(data)
        except DecodeError as error:
            problem = f"not a valid message of this method, or not UTF-8 text ({error})"
            return invalid_field("request", problem)

    return parse
