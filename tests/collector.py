"""A collector of traces, over real gRPC on a free port of this machine. Needs OpenTelemetry."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps received spans; refuses calls with the status `refuses`, or hangs until `go_on`."""

    def __init__(self, hangs: bool = False, refuses: grpc.StatusCode | None = None) -> None:
        self.url = ""
        self.metadata: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []
        """Resource attributes of each received message."""
        self.spans: list[trace_pb2.Span] = []
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.refuses = refuses
        if not hangs:
            self.go_on.set()

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: Any
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        self.metadata = dict(context.invocation_metadata())
        self.asked.set()
        self.go_on.wait()  # `collecting` ends it
        if self.refuses is not None:
            context.abort(self.refuses, "not today")
        for part in request.resource_spans:
            said = {each.key: each.value.string_value for each in part.resource.attributes}
            self.resources.append(said)
            for scope in part.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def collecting(
    hangs: bool = False,
    refuses: grpc.StatusCode | None = None,
    credentials: grpc.ServerCredentials | None = None,
) -> Iterator[Collector]:
    """Serves a collector."""
    collector = Collector(hangs, refuses)
    server = grpc.server(ThreadPoolExecutor(2))
    add = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(collector, server)  # type: ignore[no-untyped-call]
    if credentials is None:
        collector.url = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
        collector.url = f"https://127.0.0.1:{port}"
    server.start()
    try:
        yield collector
    finally:
        collector.go_on.set()
        server.stop(None).wait()
