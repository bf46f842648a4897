"""Creates the tracer of a process from its settings.

Without tracing, the exporter and OpenTelemetry are not imported.
"""

import contextlib
import os
import random
import socket
from collections.abc import Iterator

import structlog
from prometheus_client import CollectorRegistry

from winnow.errors import UnavailableError
from winnow.packaged import extra, running_version
from winnow.telemetry.metrics import trace_spans
from winnow.telemetry.tracing.otel_settings import read_otel_settings
from winnow.telemetry.tracing.queue import SpanExporter, SpanQueue
from winnow.telemetry.tracing.tracer import NO_TRACER, SamplingTracer, Tracer

_log = structlog.get_logger("winnow.traces")
_CLOSE_SECONDS = 2.0


@contextlib.contextmanager
def tracing(
    url: str,
    sample_share: float,
    service: str,
    registry: CollectorRegistry,
    close_seconds: float = _CLOSE_SECONDS,
) -> Iterator[Tracer]:
    """Opens a tracer that sends spans to a collector, and closes the tracer after the block.

    Args:
        url: URL of the collector; empty disables tracing.
        sample_share: share, 0 to 1, of the calls without a caller's trace that are traced.
        service: name of this process in traces.
        registry: registry for the counter of spans.
        close_seconds: maximum seconds for sending the last spans.

    Raises UnavailableError if OpenTelemetry is not installed. Raises SettingsError if an
    environment variable of OpenTelemetry is invalid.

    """
    if not url:
        yield NO_TRACER
        return
    spans = SpanQueue(_exporter(url, service))
    registry.register(trace_spans(lambda: spans.sent, lambda: spans.dropped))
    _log.info("tracing", to=url, share=sample_share)
    try:
        yield SamplingTracer(spans.put, sample_share, random.Random())
    finally:
        spans.close(close_seconds)


def _exporter(url: str, service: str) -> SpanExporter:
    try:
        from winnow.telemetry.tracing.otlp import OtlpExporter  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise UnavailableError(f"--trace-to needs OpenTelemetry: {extra('otel')}") from error
    return OtlpExporter(
        url,
        {
            "service.name": service,
            "service.version": running_version(),
            "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            "host.name": socket.gethostname(),
        },
        read_otel_settings(os.environ),
    )
