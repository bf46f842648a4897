"""What happens around every call: request id, trace, errors, metrics.

It is an interceptor, so that servicers only convert, call and convert.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog

from winnow.errors import WinnowError
from winnow.rpc import deadline, request_id
from winnow.rpc.status import code_of, rich_status
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.span import current
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer

_log = structlog.get_logger("winnow.rpc")
_COMMON = {"OK", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
"""Statuses that callers cause when they hedge, give up and retry, above all under load.

There is no time then to write a line for each.
"""
_WATCHING = ("GetCluster",)
"""Calls by which people watch a cluster, every second or two.

Successful ones are not logged, or the log would be full of them.
"""
_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
"""Statuses that are faults of the server in the terms of OpenTelemetry."""
_Handler = Callable[[Any, Any], Awaitable[Any]]


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Turns errors into statuses, names the request, and counts it."""

    def __init__(
        self, metrics: RpcMetrics, quiet: bool = False, tracer: Tracer = NO_TRACER
    ) -> None:
        """`quiet` does not log calls with a common status."""
        self._metrics, self._quiet = metrics, quiet
        self.tracer = tracer
        """The tracer of calls by gRPC and by HTTP."""

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Wraps the handlers of Winnow's own services that give one response."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or handler.response_streaming or not method.startswith("/winnow."):
            return handler
        make, inner = (
            (grpc.stream_unary_rpc_method_handler, handler.stream_unary)
            if handler.request_streaming
            else (grpc.unary_unary_rpc_method_handler, handler.unary_unary)
        )
        wrapped = self._wrap(inner, method.rsplit("/", 1)[-1])
        return make(
            # a stream of a million passages is no trace that anybody could look at
            wrapped if handler.request_streaming else self._traced(wrapped, method),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    def _traced(self, call: _Handler, method: str) -> _Handler:
        """`method` is like `/winnow.v1.AnswerService/Answer`."""
        name = method.removeprefix("/")
        if not self.tracer.traces(name.rpartition("/")[2]):
            return call

        async def traced(request: Any, context: Any) -> Any:
            with self.tracer.begin(name, context.invocation_metadata()):
                return await call(request, context)

        return traced

    def _wrap(self, handler: _Handler, method: str) -> _Handler:
        async def call(request: Any, context: Any) -> Any:
            structlog.contextvars.clear_contextvars()
            chosen = request_id.accept(context.invocation_metadata())
            name_call(chosen)
            context.set_trailing_metadata(((request_id.KEY, chosen),))
            started, given = time.perf_counter(), context.time_remaining()
            code = "CANCELLED"
            fault: Exception | None = None
            try:
                if isinstance(
                    request, WinnowError
                ):  # what `winnow.rpc.message_interceptor` made of it
                    raise request
                response = await handler(request, context)
                code = "OK"
                return response
            except WinnowError as error:
                code, fault = code_of(error).name, error
                await _abort(context, error, chosen)
            except asyncio.CancelledError:
                if deadline.passed(context.time_remaining(), given):
                    code = "DEADLINE_EXCEEDED"
                raise
            except Exception as error:  # noqa: BLE001 (nothing may take the node down)
                code, fault = "INTERNAL", error
                await _abort(context, WinnowError(), chosen)
            finally:
                elapsed = time.perf_counter() - started
                self.finished(method, code, elapsed, fault)

        return call

    def finished(self, method: str, code: str, elapsed: float, fault: Exception | None) -> None:
        """Counts, traces and logs a call, by gRPC or HTTP, that took `elapsed` seconds."""
        span = current()
        if span:
            span.set("rpc.grpc.status_code", grpc.StatusCode[code].value[0])
            span.failed(code if code in _FAULTS else "")
        self._metrics.finished(method, code, elapsed, span.exemplar)
        self._log_call(method, code, elapsed, fault)

    def part_finished(self, method: str, code: str, elapsed: float) -> None:
        """Counts one part of a call with several parts, under its own name."""
        self._metrics.finished(method, code, elapsed, current().exemplar)

    def _log_call(self, method: str, code: str, elapsed: float, fault: Exception | None) -> None:
        """Logs one line for a call. Does not raise, given how a process sets up its logs."""
        call = {"method": method, "status": code, "ms": round(elapsed * 1e3, 2)}
        if code == "INTERNAL":
            _log.error("call failed", **call, error=str(fault), exc_info=fault)
        elif (self._quiet and code in _COMMON) or (code == "OK" and method in _WATCHING):
            return
        elif fault is not None:
            _log.info("call refused", **call, error=str(fault))
        else:
            _log.info("call", **call)


def name_call(request: str) -> None:
    """Adds the request id to the trace of the present call, and the trace to its log lines."""
    span = current()
    if span:
        span.set("winnow.request_id", request)
        structlog.contextvars.bind_contextvars(trace_id=span.trace_id)


async def _abort(context: Any, error: WinnowError, request: str) -> None:
    """Ends a call with an error, and names its request.

    Also in the trailing metadata, since gRPC drops what was set there before.
    """
    status = rich_status(error, request)
    trailing = (*status.trailing_metadata, (request_id.KEY, request))
    await context.abort(status.code, status.details, trailing)
