"""Calls services in the same process, without a server, a connection or serialisation.

`InProcessServices` takes the place of both a server and a channel. Callers get the WinnowError that
a service raises, instead of a gRPC status.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc

from winnow.errors import DeadlineExceededError, NotServedError

Metadata: TypeAlias = Sequence[tuple[str, str]]
Invoke = Callable[..., Awaitable[Any]]


@dataclass
class CallDetails:
    """The details of a call by which gRPC finds its handler."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


class InProcessContext:
    """The context of one call: its deadline and its metadata."""

    def __init__(self, timeout: float | None, metadata: Metadata) -> None:
        """`timeout` in seconds; None for no deadline."""
        self._until = None if timeout is None else time.monotonic() + timeout
        self._metadata = metadata

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self._until is None else self._until - time.monotonic()

    def invocation_metadata(self) -> Metadata:
        """The metadata of the caller."""
        return self._metadata


class InProcessServices:
    """Services that are called directly. Add servicers and create stubs as with `grpc.aio`."""

    def __init__(self) -> None:
        self._handlers: list[grpc.GenericRpcHandler] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Adds the methods of a service; generated code calls this."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Does nothing: generated code also adds these methods with `add_generic_rpc_handlers`."""

    def unary_unary(
        self,
        method: str,
        request_serializer: object = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        **_: object,
    ) -> Invoke:
        """Returns the callable of a method; generated stubs call this."""

        async def invoke(
            request: object, timeout: float | None = None, metadata: Metadata = ()
        ) -> Any:
            context = InProcessContext(timeout, metadata)
            limit = asyncio.timeout(timeout)
            try:
                async with limit:  # gRPC does the same, so not all services watch their deadline
                    reply = await self._find(method)(request, context)
            except TimeoutError as error:
                if not limit.expired():
                    raise
                raise DeadlineExceededError(f"no reply within {timeout:g} s") from error
            if isinstance(reply, bytes) and response_deserializer is not None:
                return response_deserializer(reply)
            return reply

        return invoke

    def unary_stream(self, method: str, *_: object, **__: object) -> Invoke:
        """Returns a callable that raises NotServedError, because streams need a server."""
        return self.stream_unary(method)

    def stream_unary(self, method: str, *_: object, **__: object) -> Invoke:
        """Returns a callable that raises NotServedError, because streams need a server."""

        async def refuse(*_: object, **__: object) -> Any:
            raise NotServedError(f"{method} takes a stream, which needs a server")

        return refuse

    def _find(self, method: str) -> Invoke:
        details = CallDetails(method)
        found = (handler.service(details) for handler in self._handlers)
        handler = next((each for each in found if each is not None), None)
        if handler is None or handler.unary_unary is None:
            raise NotServedError(f"the index does not serve {method}")
        return handler.unary_unary
