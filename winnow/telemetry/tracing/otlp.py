"""Pieces of work as spans of OpenTelemetry, sent to a collector by OTLP over gRPC.

The one file that needs OpenTelemetry. Its exporter reads the standard variables of a certificate,
headers and compression (OTEL_EXPORTER_OTLP_…); what a process says of itself may be added to by
OTEL_RESOURCE_ATTRIBUTES.
"""

import logging
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, TraceState
from opentelemetry.trace.status import Status, StatusCode

from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import Kind

_SECONDS = 5.0
"""That one export may take, with every try again."""
_KINDS = {
    Kind.INTERNAL: SpanKind.INTERNAL,
    Kind.SERVER: SpanKind.SERVER,
    Kind.CLIENT: SpanKind.CLIENT,
}
_SCOPE = InstrumentationScope("winnow")


class OtlpExporter:
    """Sends to one collector."""

    def __init__(self, url: str, said: Mapping[str, str]) -> None:
        """Connects when something is sent. `url`: http://HOST:PORT, or https; `said`: what the
        process says of itself.
        """
        # it warns at every try, and says in the end that an export has failed
        logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)
        self._resource = Resource(said).merge(OTELResourceDetector().detect())
        insecure = not url.startswith("https:")
        self._exporter = OTLPSpanExporter(endpoint=url, insecure=insecure, timeout=_SECONDS)

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        """Whether the collector took them within some seconds."""
        result = self._exporter.export([_readable(span, self._resource) for span in spans])
        return result is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Ends an export that goes on; later ones fail at once."""
        self._exporter.shutdown()


def _readable(span: RecordedSpan, resource: Resource) -> ReadableSpan:
    trace = span.trace
    state = TraceState.from_header([trace.state]) if trace.state else None
    here = SpanContext(trace.id, span.id, False, TraceFlags(TraceFlags.SAMPLED), state)
    of_caller = span.kind is Kind.SERVER
    return ReadableSpan(
        span.name,
        here,
        SpanContext(trace.id, span.parent, of_caller) if span.parent else None,
        resource,
        span.attributes,
        kind=_KINDS[span.kind],
        instrumentation_scope=_SCOPE,
        status=Status(StatusCode.ERROR, span.fault) if span.fault else Status(),
        start_time=span.began,
        end_time=span.ended,
    )
