"""Exports spans to an OpenTelemetry collector, with OTLP over gRPC.

This is the only module that imports OpenTelemetry. It imports only the messages, because the SDK
needs many times as much time to record and convert a span (decision 16).
"""

import threading
from collections.abc import Iterable, Mapping, Sequence

import grpc
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from winnow.telemetry.tracing.otel_settings import OtelSettings
from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import SpanKind, Value

_log = structlog.get_logger("winnow.traces")
_EXPORT_SECONDS = 5.0
"""Time limit of an export in seconds, including the connection."""
_OPTIONS = (
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_INTEGER_LIMIT = 2**63
"""Bound of integer attributes. Versions that callers choose may exceed it."""
_KINDS = {
    SpanKind.INTERNAL: trace_pb2.Span.SPAN_KIND_INTERNAL,
    SpanKind.SERVER: trace_pb2.Span.SPAN_KIND_SERVER,
    SpanKind.CLIENT: trace_pb2.Span.SPAN_KIND_CLIENT,
}
_SCOPE = common_pb2.InstrumentationScope(name="winnow")


class OtlpExporter:
    """An exporter that sends spans to one collector."""

    def __init__(self, url: str, attributes: Mapping[str, str], settings: OtelSettings) -> None:
        """Connects at the first export.

        Args:
            url: http://HOST:PORT or https://HOST:PORT.
            attributes: attributes that describe the process in traces.
            settings: the settings from OpenTelemetry's environment variables.

        """
        self._url, self._headers = url, settings.headers
        self._resource = resource_pb2.Resource(
            attributes=_pairs({**attributes, **settings.resource})
        )
        self._channel = _open_channel(url, settings)
        self._stub = trace_service_pb2_grpc.TraceServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._failing, self._closed = False, threading.Event()

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        """Sends spans; returns whether the collector accepted them in time."""
        scope = trace_pb2.ScopeSpans(scope=_SCOPE, spans=map(to_otlp, spans))
        resource_spans = trace_pb2.ResourceSpans(resource=self._resource, scope_spans=[scope])
        request = trace_service_pb2.ExportTraceServiceRequest(resource_spans=[resource_spans])
        try:
            self._stub.Export(
                request, timeout=_EXPORT_SECONDS, metadata=self._headers, wait_for_ready=True
            )
        except grpc.RpcError as error:
            self._log_failure(error)
            return False
        except ValueError:  # the channel was closed
            if not self._closed.is_set():
                raise
            return False
        if self._failing:
            self._failing = False
            _log.info("collector accepts traces again", to=self._url)
        return True

    def close(self) -> None:
        """Cancels a running export; later exports fail immediately."""
        self._closed.set()
        self._channel.close()

    def _log_failure(self, error: grpc.RpcError) -> None:
        """Logs the first failure after a success; later failures are not logged."""
        if self._closed.is_set() or self._failing:
            return
        self._failing = True
        # without the details, because a collector may quote the headers of the request
        code = error.code().name if isinstance(error, grpc.Call) else type(error).__name__
        _log.warning("collector does not accept traces", to=self._url, status=code)


def to_otlp(span: RecordedSpan) -> trace_pb2.Span:
    """Converts a span to OpenTelemetry's message."""
    converted = trace_pb2.Span(
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
        converted.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        converted.status.message = span.fault
    return converted


def _pairs(attributes: Mapping[str, Value]) -> Iterable[common_pb2.KeyValue]:
    for key, value in attributes.items():
        yield common_pb2.KeyValue(key=key, value=_any(value))


def _any(value: Value) -> common_pb2.AnyValue:
    if isinstance(value, bool):
        return common_pb2.AnyValue(bool_value=value)
    if isinstance(value, int) and abs(value) < _INTEGER_LIMIT:
        return common_pb2.AnyValue(int_value=value)
    if isinstance(value, float):
        return common_pb2.AnyValue(double_value=value)
    return common_pb2.AnyValue(string_value=str(value))


def _open_channel(url: str, settings: OtelSettings) -> grpc.Channel:
    scheme, _, address = url.rstrip("/").partition("://")
    if scheme == "http":
        return grpc.insecure_channel(address, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(
        settings.authority, settings.key, settings.certificate
    )
    return grpc.secure_channel(address, credentials, options=_OPTIONS)
