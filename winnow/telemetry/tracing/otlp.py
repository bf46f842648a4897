"""Spans of OpenTelemetry, sent to a collector by OTLP over gRPC.

The only file that needs OpenTelemetry, and only its messages: its SDK takes many times as long to
record a span and to convert it (decision 16).
"""

import threading
from collections.abc import Iterable, Mapping, Sequence

import grpc
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import SpanKind, Value
from winnow.telemetry.tracing.standard import Standard

_log = structlog.get_logger("winnow.traces")
_SECONDS = 5.0
"""Seconds to wait for a collector, the connection included."""
_OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_INTEGERS = 2**63
"""Limit of integers; a caller may use any number of 64 bits as a version."""
_KINDS = {
    SpanKind.INTERNAL: trace_pb2.Span.SPAN_KIND_INTERNAL,
    SpanKind.SERVER: trace_pb2.Span.SPAN_KIND_SERVER,
    SpanKind.CLIENT: trace_pb2.Span.SPAN_KIND_CLIENT,
}
_SCOPE = common_pb2.InstrumentationScope(name="winnow")


class OtlpExporter:
    """Sends to one collector."""

    def __init__(self, url: str, said: Mapping[str, str], standard: Standard) -> None:
        """Connects when something is sent.

        Args:
            url: http://HOST:PORT, or https.
            said: what the process says of itself.
            standard: what the variables of OpenTelemetry say.

        """
        self._url, self._headers = url, standard.headers
        self._resource = resource_pb2.Resource(attributes=_pairs({**said, **standard.resource}))
        self._channel = _opened(url, standard)
        self._stub = trace_service_pb2_grpc.TraceServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._failing, self._closed = False, threading.Event()

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        """Whether the collector took the spans within some seconds."""
        scope = trace_pb2.ScopeSpans(scope=_SCOPE, spans=map(message, spans))
        part = trace_pb2.ResourceSpans(resource=self._resource, scope_spans=[scope])
        request = trace_service_pb2.ExportTraceServiceRequest(resource_spans=[part])
        try:
            self._stub.Export(
                request, timeout=_SECONDS, metadata=self._headers, wait_for_ready=True
            )
        except grpc.RpcError as error:
            self._failed(error)
            return False
        except ValueError:  # of a channel that is closed
            if not self._closed.is_set():
                raise
            return False
        if self._failing:
            self._failing = False
            _log.info("collector accepts traces again", to=self._url)
        return True

    def close(self) -> None:
        """Ends a running export; later ones fail at once."""
        self._closed.set()
        self._channel.close()

    def _failed(self, error: grpc.RpcError) -> None:
        """Logs the first failure until an export succeeds."""
        if self._closed.is_set() or self._failing:
            return
        self._failing = True
        # what a collector answers may quote the headers that it was sent
        code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
        _log.warning("collector does not accept traces", to=self._url, status=code)


def message(span: RecordedSpan) -> trace_pb2.Span:
    """The span as a message of OpenTelemetry."""
    made = trace_pb2.Span(
        trace_id=span.trace.id.to_bytes(16, "big"),
        trace_state=span.trace.state,
        span_id=span.id.to_bytes(8, "big"),
        parent_span_id=span.parent.to_bytes(8, "big") if span.parent else b"",
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.began,
        end_time_unix_nano=span.ended,
        attributes=_pairs(span.attributes),
    )
    if span.fault:
        made.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        made.status.message = span.fault
    return made


def _pairs(attributes: Mapping[str, Value]) -> Iterable[common_pb2.KeyValue]:
    for key, value in attributes.items():
        yield common_pb2.KeyValue(key=key, value=_any(value))


def _any(value: Value) -> common_pb2.AnyValue:
    if isinstance(value, bool):
        return common_pb2.AnyValue(bool_value=value)
    if isinstance(value, int) and abs(value) < _INTEGERS:
        return common_pb2.AnyValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.AnyValue(double_value=value)
    return common_pb2.AnyValue(string_value=str(value))


def _opened(url: str, standard: Standard) -> grpc.Channel:
    scheme, _, address = url.rstrip("/").partition("://")
    if scheme == "http":
        return grpc.insecure_channel(address, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(
        standard.authority, standard.key, standard.certificate
    )
    return grpc.secure_channel(address, credentials, options=_OPTIONS)
