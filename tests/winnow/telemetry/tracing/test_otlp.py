"""Spans as a collector gets them, by OTLP over real gRPC."""

import contextlib
import socket
import time

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import until

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

import grpc
from collector import collecting
from opentelemetry.proto.trace.v1 import trace_pb2

from winnow.telemetry.tracing.opening import tracing
from winnow.telemetry.tracing.span import Kind, span
from winnow.telemetry.tracing.traceparent import written

LONG = 30.0
CALLER = (*written(7, 5), ("tracestate", "other=1"))


def figure(registry: CollectorRegistry, result: str) -> float:
    return registry.get_sample_value("winnow_trace_spans_total", {"result": result}) or 0.0


def free_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_a_collector_gets_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=front-0,deployment=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    registry = CollectorRegistry()
    with collecting() as collector:
        with tracing(collector.url, 0.0, "winnow-front", registry) as tracer:
            started = time.time_ns()
            with tracer.begin("Answer", CALLER) as call:
                call.set("winnow.complete", True)
                call.set("winnow.queue_ms", 0.5)
                with span("ask", {"winnow.shard": 3}, Kind.CLIENT) as asking:
                    asking.set("server.address", "node:1")
                    asking.failed("UnavailableError")
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


def test_a_collector_that_is_down_costs_its_spans_and_nothing_else() -> None:
    registry = CollectorRegistry()
    with (
        tracing(free_url(), 1.0, "winnow-front", registry, patience=0.5) as tracer,
        tracer.begin("Answer", ()),
    ):
        pass
    assert (figure(registry, "sent"), figure(registry, "dropped")) == (0, 1)


def test_a_collector_that_hangs_does_not_hold_up_the_end() -> None:
    registry = CollectorRegistry()
    with collecting(hangs=True) as collector, contextlib.ExitStack() as open_until:
        traces = tracing(collector.url, 1.0, "winnow-front", registry, patience=0.1)
        tracer = open_until.enter_context(traces)
        with tracer.begin("Answer", ()):
            pass
        assert collector.asked.wait(LONG)
        open_until.close()
        assert not collector.go_on.is_set()
        assert figure(registry, "dropped") == 1


def test_a_collector_that_refuses_is_told_of_in_the_metrics() -> None:
    registry = CollectorRegistry()
    with (
        collecting(refuses=grpc.StatusCode.PERMISSION_DENIED) as collector,
        tracing(collector.url, 1.0, "winnow-front", registry) as tracer,
    ):
        with tracer.begin("Answer", ()):
            pass
        until(lambda: figure(registry, "dropped") == 1, LONG)


def test_it_is_said_where_traces_go() -> None:
    url = free_url()
    with capture_logs() as logged, tracing(url, 0.25, "winnow-front", CollectorRegistry()):
        pass
    assert {"event": "tracing", "to": url, "share": 0.25, "log_level": "info"} in logged
