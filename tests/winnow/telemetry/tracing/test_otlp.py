"""Spans as a collector gets them, by OTLP over real gRPC."""

import contextlib
import shutil
import subprocess
import time
from functools import partial
from pathlib import Path

import needs
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import until

pytest.importorskip("opentelemetry.proto", reason=needs.OTEL)

import grpc
from collector import collecting
from opentelemetry.proto.trace.v1 import trace_pb2
from tenacious import LONG

from winnow.cli.local.ports import free_ports
from winnow.telemetry.tracing import otlp
from winnow.telemetry.tracing.opening import tracing
from winnow.telemetry.tracing.span import SpanKind, span
from winnow.telemetry.tracing.traceparent import trace_headers

CALLER = (*trace_headers(7, 5), ("tracestate", "other=1"))


def figure(registry: CollectorRegistry, result: str) -> float:
    return registry.get_sample_value("winnow_trace_spans_total", {"result": result}) or 0.0


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each export `LONG` seconds."""
    monkeypatch.setattr(otlp, "_EXPORT_SECONDS", LONG)


def free_url() -> str:
    return f"http://127.0.0.1:{free_ports(1)[0]}"


def test_a_collector_gets_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=front-0,deployment=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    registry = CollectorRegistry()
    with collecting() as collector:
        with tracing(collector.url, 0.0, "winnow-front", registry, LONG) as tracer:
            started = time.time_ns()
            with tracer.begin("Answer", CALLER) as call:
                call.set("winnow.complete", True)
                call.set("winnow.queue_ms", 0.5)
                with span("ask", {"winnow.shard": 3}, SpanKind.CLIENT) as asking:
                    asking.set("server.address", "node:1")
                    asking.set_fault("UnavailableError")
        part, whole = collector.spans
        assert figure(registry, "sent") == 2
    assert collector.metadata["x-key"] == "secret"
    assert collector.resources[0]["service.name"] == "winnow-front"
    assert collector.resources[0]["k8s.pod.name"] == "front-0"
    assert {whole.trace_id, part.trace_id} == {(7).to_bytes(16, "big")}
    assert (whole.parent_span_id, part.parent_span_id) == ((5).to_bytes(8, "big"), whole.span_id)
    assert (whole.name, part.name) == ("Answer", "ask")
    assert (whole.kind, part.kind) == (
        trace_pb2.Span.SPAN_KIND_SERVER,
        trace_pb2.Span.SPAN_KIND_CLIENT,
    )
    said = {each.key: each.value for each in (*whole.attributes, *part.attributes)}
    assert said["winnow.shard"].int_value == 3
    assert said["server.address"].string_value == "node:1"
    assert said["winnow.queue_ms"].double_value == 0.5
    assert said["winnow.complete"].bool_value
    assert (part.status.code, part.status.message) == (
        trace_pb2.Status.STATUS_CODE_ERROR,
        "UnavailableError",
    )
    assert part.trace_state == "other=1"
    assert started <= whole.start_time_unix_nano <= part.start_time_unix_nano
    assert part.end_time_unix_nano <= whole.end_time_unix_nano <= time.time_ns() + 10**9


def test_a_number_that_no_span_can_hold_costs_no_others_theirs() -> None:
    """A question may name any write that it wants to know of: the node's trace says which."""
    registry = CollectorRegistry()
    with collecting() as collector:
        with (
            tracing(collector.url, 0.0, "winnow-node", registry, LONG) as tracer,
            tracer.begin("Retrieve", CALLER),
            span("await write", {"winnow.sequence": 2**64 - 1}),
        ):
            pass
        assert figure(registry, "sent") == 2
    (said,) = collector.spans[0].attributes
    assert said.value.string_value == str(2**64 - 1)


def test_a_collector_that_is_down_costs_its_spans_and_nothing_else() -> None:
    registry = CollectorRegistry()
    trace_once(free_url(), "winnow-front", registry, patience=0.5)
    until(lambda: figure(registry, "dropped") == 1, LONG)
    assert figure(registry, "sent") == 0


def test_spans_that_wait_at_the_end_are_dropped_without_a_word() -> None:
    registry = CollectorRegistry()
    with capture_logs() as logged:
        with tracing(free_url(), 1.0, "winnow-front", registry, close_seconds=0.1) as tracer:
            for _ in range(1_000):
                with tracer.begin("Answer", ()):
                    pass
        until(lambda: figure(registry, "dropped") == 1_000, LONG)
    assert [line["event"] for line in logged] == ["tracing"]


def test_a_collector_that_hangs_does_not_hold_up_the_end() -> None:
    registry = CollectorRegistry()
    with collecting(hangs=True) as collector, contextlib.ExitStack() as open_until:
        traces = tracing(collector.url, 1.0, "winnow-front", registry, close_seconds=0.1)
        tracer = open_until.enter_context(traces)
        with tracer.begin("Answer", ()):
            pass
        assert collector.asked.wait(LONG)
        open_until.close()
        assert figure(registry, "sent") == 0
        until(lambda: figure(registry, "dropped") == 1, LONG)


def test_a_collector_that_refuses_is_told_of_in_the_metrics() -> None:
    registry = CollectorRegistry()
    with (
        collecting(refuses=grpc.StatusCode.PERMISSION_DENIED) as collector,
        tracing(collector.url, 1.0, "winnow-front", registry) as tracer,
    ):
        with tracer.begin("Answer", ()):
            pass
        until(lambda: figure(registry, "dropped") == 1, LONG)


def trace_once(url: str, service: str, registry: CollectorRegistry, patience: float) -> None:
    with tracing(url, 1.0, service, registry, patience) as tracer, tracer.begin("Answer", ()):
        pass


def self_signed(directory: Path) -> tuple[bytes, bytes]:
    """The key and the certificate of 127.0.0.1."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "1"]
    command += ["-subj", "/CN=collector", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return key.read_bytes(), certificate.read_bytes()


@pytest.mark.skipif(shutil.which("openssl") is None, reason=needs.OPENSSL)
def test_a_collector_that_a_known_authority_vouches_for_gets_its_spans_by_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = grpc.ssl_server_credentials([self_signed(tmp_path)])
    registry, unknown = CollectorRegistry(), CollectorRegistry()
    with collecting(credentials=credentials) as collector:
        trace_once(collector.url, "a", unknown, patience=0.2)
        until(lambda: figure(unknown, "dropped") == 1, LONG)
        path = str(tmp_path / "certificate.pem")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", path)
        trace_once(collector.url, "b", registry, patience=LONG)
        assert figure(registry, "sent") == 1
    assert [each["service.name"] for each in collector.resources] == ["b"]


def test_a_collector_that_comes_back_is_told_of_in_the_log() -> None:
    registry = CollectorRegistry()
    with (
        capture_logs() as logged,
        collecting(refuses=grpc.StatusCode.UNAVAILABLE) as collector,
        tracing(collector.url, 1.0, "winnow-front", registry) as tracer,
    ):
        for count in (1, 2):
            with tracer.begin("Answer", ()):
                pass
            until(partial(lambda n: figure(registry, "dropped") == n, count), LONG)
        collector.refuses = None
        with tracer.begin("Answer", ()):
            pass
        until(lambda: figure(registry, "sent") == 1, LONG)
    said = [(line["event"], line.get("status")) for line in logged if line["event"] != "tracing"]
    assert said == [
        ("collector does not accept traces", "UNAVAILABLE"),
        ("collector accepts traces again", None),
    ]


def test_it_is_said_where_traces_go() -> None:
    url = free_url()
    with capture_logs() as logged, tracing(url, 0.25, "winnow-front", CollectorRegistry()):
        pass
    assert {"event": "tracing", "to": url, "share": 0.25, "log_level": "info"} in logged
