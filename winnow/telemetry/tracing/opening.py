"""Creates a tracer from settings; nothing is imported, and no time spent, without tracing."""

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

import structlog
from prometheus_client import CollectorRegistry

from winnow.errors import UnavailableError
from winnow.packaged import extra, running_version
from winnow.telemetry.metrics import trace_spans
from winnow.telemetry.tracing.queue import Exporter, SpanQueue
from winnow.telemetry.tracing.standard import standard
from winnow.telemetry.tracing.tracer import NO_TRACER, SamplingTracer, Tracer

_log = structlog.get_logger("winnow.traces")
_PATIENCE = 2.0


def collector_url(value: str) -> str:
    """A setting that is the URL of a collector, or empty. Raises ValueError if it is something
    else.
    """
    if not value:
        return value
    parts = urlsplit(value)
    if "@" in parts.netloc:
        raise ValueError("a collector's URL holds no secret: see OTEL_EXPORTER_OTLP_HEADERS")
    known = parts.scheme in ("http", "https") and parts.hostname and _has_port(parts)
    if not known or parts.path.strip("/") or parts.query:
        raise ValueError(
            f"{value!r} is no collector of OTLP over gRPC: expected http://HOST:PORT, mostly 4317"
        )
    return value


def _has_port(parts: SplitResult) -> bool:
    try:
        return bool(parts.port)
    except ValueError:
        return False


@contextlib.contextmanager
def tracing(
    url: str, share: float, service: str, registry: CollectorRegistry, patience: float = _PATIENCE
) -> Iterator[Tracer]:
    """A tracer that sends to a collector, for as long as a process serves.

    Args:
        url: of the collector; empty for none, where nothing is traced.
        share: of calls that come without a trace, 0 to 1.
        service: what traces call this process.
        registry: gets the metrics.
        patience: seconds that the last spans get to be sent, once it is over.

    Raises UnavailableError if OpenTelemetry is not installed. Raises SettingsError if the variables
    of OpenTelemetry say what cannot be.

    """
    if not url:
        yield NO_TRACER
        return
    spans = SpanQueue(_exporter(url, service))
    registry.register(trace_spans(lambda: spans.sent, lambda: spans.dropped))
    _log.info("tracing", to=url, share=share)
    try:
        yield SamplingTracer(spans.put, share, random.Random())
    finally:
        spans.close(patience)


def _exporter(url: str, service: str) -> Exporter:
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
        standard(os.environ),
    )
