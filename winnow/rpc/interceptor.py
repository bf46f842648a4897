"""The interceptor of every call: sets the request id, traces, converts errors, counts and logs.

Servicers only need to convert the request, call the core, and convert the result.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
import structlog

from winnow import reply_headers
from winnow.errors import WinnowError
from winnow.rpc import deadline, request_id
from winnow.rpc.status import code_of, rich_status
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.span import current
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer

_log = structlog.get_logger("winnow.rpc")
_EXPECTED_CODES = {"OK", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
"""Statuses that hedging, cancelling and retrying cause, mostly under load.

Logging each such call under load would cost too much.
"""
_MONITORING_METHODS = ("GetCluster",)
"""Methods that monitoring calls every second or two. Their successful calls are not logged."""
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
"""Statuses that OpenTelemetry treats as server errors."""
_Handler = Callable[[Any, Any], Awaitable[Any]]
_StreamHandler = Callable[[Any, Any], AsyncGenerator[Any, None]]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Turns errors into statuses, sets the request id, and counts, traces and logs every call."""

    def __init__(
        self, metrics: RpcMetrics, quiet: bool = False, tracer: Tracer = NO_TRACER
    ) -> None:
        """`quiet`: do not log calls whose status is frequent under load."""
        self._metrics, self._quiet = metrics, quiet
        self.tracer = tracer
        """The tracer of gRPC and HTTP calls."""

    def quieted(self) -> "CallInterceptor":
        """Returns a quiet interceptor with the same metrics and tracer, for calls between nodes."""
        return CallInterceptor(self._metrics, True, self.tracer)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wraps the handlers of Winnow's own services."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or not method.startswith("/winnow."):
            return handler
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._wrap_stream(handler.unary_stream, method.rsplit("/", 1)[-1]),
                request_deserializer=handler.request_deserializer,
                response_serializer=handler.response_serializer,
            )
        make, inner = (
            (grpc.stream_unary_rpc_method_handler, handler.stream_unary)
            if handler.request_streaming
            else (grpc.unary_unary_rpc_method_handler, handler.unary_unary)
        )
        wrapped = self._wrap(inner, method.rsplit("/", 1)[-1])
        return make(
            # streams are not traced: a trace of a million passages would be unreadable
            wrapped if handler.request_streaming else self._traced(wrapped, method),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _traced(self, call: _Handler, method: str) -> _Handler:
        """Wraps a handler in a span; `method` is, e.g., `/winnow.v1.AnswerService/Answer`."""
        name = method.removeprefix("/")
        if not self.tracer.may_trace(name.rpartition("/")[2]):
            return call

        async def traced(request: Any, context: Any) -> Any:
            with self.tracer.begin(name, context.invocation_metadata()):
                return await call(request, context)

        return traced

    def _wrap(self, handler: _Handler, method: str) -> _Handler:
        async def call(request: Any, context: Any) -> Any:
            async with self._recorded(context, method):
                if isinstance(request, WinnowError):  # from `winnow.rpc.message_interceptor`
                    raise request
                return await handler(request, context)

        return call

    def _wrap_stream(self, handler: _StreamHandler, method: str) -> _StreamHandler:
        async def call(request: Any, context: Any) -> AsyncGenerator[Any, None]:
            async with self._recorded(context, method):
                if isinstance(request, WinnowError):
                    raise request
                async with aclosing(handler(request, context)) as replies:
                    async for reply in replies:
                        yield reply

        return call

    @asynccontextmanager
    async def _recorded(self, context: Any, method: str) -> AsyncIterator[None]:
        """Sets the request id; converts the errors of the call within the context, and records the
        call at its end.
        """
        structlog.contextvars.clear_contextvars()
        call_id = request_id.accept_or_create(context.invocation_metadata())
        bind_request_id(call_id)
        context.set_trailing_metadata(((request_id.KEY, call_id),))
        headers = reply_headers.begin()
        started, initial_time = time.perf_counter(), context.time_remaining()
        code = "CANCELLED"
        fault: Exception | None = None
        try:
            yield
            code = "OK"
            if headers:
                trailing = ((request_id.KEY, call_id), *headers.items())
                context.set_trailing_metadata(trailing)
        except WinnowError as error:
            code, fault = code_of(error).name, error
            await _abort(context, error, call_id)
        except (asyncio.CancelledError, GeneratorExit):  # the latter: while a reply is written
            if deadline.was_reached(context.time_remaining(), initial_time):
                code = "DEADLINE_EXCEEDED"
            raise
        except Exception as error:  # noqa: BLE001 (no call may end the process)
            code, fault = "INTERNAL", error
            await _abort(context, WinnowError(), call_id)
        finally:
            elapsed = time.perf_counter() - started
            self.record_call(method, code, elapsed, fault)

    def record_call(self, method: str, code: str, elapsed: float, fault: Exception | None) -> None:
        """Counts, traces and logs a gRPC or HTTP call that took `elapsed` seconds."""
        span = current()
        if span:
            span.set("rpc.grpc.status_code", grpc.StatusCode[code].value[0])
            span.set_fault(code if code in _FAULTS else "")
        self._metrics.record_call(method, code, elapsed, span.exemplar)
        self._log_call(method, code, elapsed, fault)

    def record_part(self, method: str, code: str, elapsed: float) -> None:
        """Counts one part of a call that has several parts, under its own method name."""
        self._metrics.record_call(method, code, elapsed, current().exemplar)

    def _log_call(self, method: str, code: str, elapsed: float, fault: Exception | None) -> None:
        """Logs one line for a call. Never raises if `logging_to_stderr` has set up logging."""
        call = {"method": method, "status": code, "ms": round(elapsed * 1e3, 2)}
        if code == "INTERNAL":
            _log.error("call failed", **call, error=str(fault), exc_info=fault)
        elif (self._quiet and code in _EXPECTED_CODES) or (
            code == "OK" and method in _MONITORING_METHODS
        ):
            return
        elif fault is not None:
            _log.info("call refused", **call, error=str(fault))
        else:
            _log.info("call", **call)


def bind_request_id(request_id: str) -> None:
    """Adds the request id to the trace of the current call, and the trace id to its log lines."""
    span = current()
    if span:
        span.set("winnow.request_id", request_id)
        structlog.contextvars.bind_contextvars(trace_id=span.trace_id)


async def _abort(context: Any, error: WinnowError, request: str) -> None:
    """Ends a call with an error and its request id.

    Sets the id in the trailing metadata again, because gRPC drops the earlier value.
    """
    status = rich_status(error, request)
    trailing = (*status.trailing_metadata, (request_id.KEY, request))
    await context.abort(status.code, status.details, trailing)
