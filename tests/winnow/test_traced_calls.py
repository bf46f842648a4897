"""Traces at the edge of a server, over real gRPC."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Self

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from structlog.testing import capture_logs
from tenacious import LONG, happens
from traced import Traced

from winnow.errors import InvalidRequestError, UnavailableError, Violation
from winnow.rpc import call_metadata, request_id
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.telemetry.endpoint import exposition
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.recorded import GIVEN_UP
from winnow.telemetry.tracing.traceparent import parse_caller, trace_headers
from winnow.v1 import feed_pb2, feed_pb2_grpc, head_pb2, head_pb2_grpc

FEED, HEADS = "winnow.v1.FeedService", "winnow.v1.HeadService"
CALLER = trace_headers(7, 5)


class Servicer(feed_pb2_grpc.FeedServiceServicer, head_pb2_grpc.HeadServiceServicer):
    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        self.error: Exception | None = None
        self.handed_on: tuple[tuple[str, str], ...] = ()

    async def Put(self, request: feed_pb2.PutRequest, context: Any) -> feed_pb2.PutResponse:
        if request.passages and request.passages[0].id == "hang":
            self.hanging.set()
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        self.handed_on = call_metadata.build("me")
        return feed_pb2.PutResponse()

    async def Delete(
        self, request: feed_pb2.DeleteRequest, context: Any
    ) -> feed_pb2.DeleteResponse:
        return feed_pb2.DeleteResponse()

    async def PutStream(self, requests: Any, context: Any) -> feed_pb2.FeedSummary:
        async for _ in requests:
            pass
        return feed_pb2.FeedSummary()

    async def DeleteWhere(self, request: feed_pb2.DeleteWhereRequest, context: Any) -> Any:
        return feed_pb2.DeleteWhereResponse()

    async def DeleteTenant(self, request: feed_pb2.DeleteTenantRequest, context: Any) -> Any:
        return feed_pb2.DeleteTenantResponse()

    async def DeleteStream(self, requests: Any, context: Any) -> feed_pb2.FeedSummary:
        return feed_pb2.FeedSummary()

    async def Predict(
        self, request: head_pb2.PredictRequest, context: Any
    ) -> head_pb2.PredictResponse:
        return head_pb2.PredictResponse()

    async def ListHeads(
        self, request: head_pb2.ListHeadsRequest, context: Any
    ) -> head_pb2.ListHeadsResponse:
        return head_pb2.ListHeadsResponse()


class Edge:
    """A server, what it traces, and a channel to it."""

    def __init__(self, share: float) -> None:
        self.traced, self.servicer = Traced(share), Servicer()
        self.registry = CollectorRegistry()
        boundary = CallInterceptor(RpcMetrics(self.registry), tracer=self.traced.tracer)
        self.server = Server(services=[FEED, HEADS], interceptor=boundary)
        feed_pb2_grpc.add_FeedServiceServicer_to_server(self.servicer, self.server.grpc)
        head_pb2_grpc.add_HeadServiceServicer_to_server(self.servicer, self.server.grpc)

    async def put(self, passage: str = "", **options: Any) -> Any:
        stub = feed_pb2_grpc.FeedServiceStub(self.channel)
        request = feed_pb2.PutRequest()
        request.passages.add(id=passage)
        return await stub.Put(request, **{"timeout": 60, **options})

    async def __aenter__(self) -> Self:
        port = await self.server.start("127.0.0.1:0")
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()
        await self.server.drain(0)


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    async with Edge(share=1.0) as opened:
        yield opened


async def test_a_call_is_a_part_of_its_callers_trace(edge: Edge) -> None:
    await edge.put(metadata=(*CALLER, (request_id.KEY, "mine")))
    call = edge.traced.one("winnow.v1.FeedService/Put")
    assert (call.trace.id, call.parent) == (7, 5)
    assert call.attributes == {
        "winnow.request_id": "mine",
        "rpc.grpc.status_code": 0,
    }
    handed_on = dict(edge.servicer.handed_on)
    caller = parse_caller(edge.servicer.handed_on)
    assert caller is not None
    assert (caller.trace_id, caller.span_id, caller.sampled) == (7, call.id, True)
    assert handed_on[request_id.KEY] == "mine"
    assert handed_on["x-winnow-client"] == "me"


async def test_what_a_caller_does_not_record_hands_no_trace_on(edge: Edge) -> None:
    await edge.put(metadata=(("traceparent", CALLER[0][1][:-1] + "0"),))
    assert edge.traced == []
    assert dict(edge.servicer.handed_on).keys() == {request_id.KEY, "x-winnow-client"}


async def test_a_process_without_a_share_traces_for_its_callers_only() -> None:
    async with Edge(share=0.0) as edge:
        await edge.put()
        assert edge.traced == []
        await edge.put(metadata=CALLER)
        assert [each.trace.id for each in edge.traced] == [7]


@pytest.mark.parametrize(
    ("error", "status", "fault"),
    [
        (InvalidRequestError(Violation("id", "Rosebud is not valid")), 3, ""),
        (UnavailableError("Rosebud is gone"), 14, "UNAVAILABLE"),
        (ZeroDivisionError("Rosebud"), 13, "INTERNAL"),
    ],
)
async def test_a_call_failed_where_that_is_the_servers_fault(
    edge: Edge, error: Exception, status: int, fault: str
) -> None:
    edge.servicer.error = error
    with pytest.raises(grpc.aio.AioRpcError):
        await edge.put()
    await happens(lambda: bool(edge.traced))
    call = edge.traced.one("winnow.v1.FeedService/Put")
    assert (call.attributes["rpc.grpc.status_code"], call.fault) == (status, fault)
    assert "Rosebud" not in repr(call.attributes)


async def test_a_call_that_its_caller_gives_up_has_not_failed(edge: Edge) -> None:
    call = asyncio.ensure_future(edge.put("hang"))
    await asyncio.wait_for(edge.servicer.hanging.wait(), LONG)
    call.cancel()
    await happens(lambda: bool(edge.traced))
    assert edge.traced[0].attributes[GIVEN_UP]
    assert edge.traced[0].attributes["rpc.grpc.status_code"] == 1
    assert not edge.traced[0].fault


async def test_looks_and_streams_are_not_traced(edge: Edge) -> None:
    """A stream of a million passages is no trace that anybody could look at."""
    await head_pb2_grpc.HeadServiceStub(edge.channel).ListHeads(
        head_pb2.ListHeadsRequest(), metadata=CALLER, timeout=60
    )
    stream = feed_pb2_grpc.FeedServiceStub(edge.channel).PutStream(metadata=CALLER, timeout=60)
    await stream.write(feed_pb2.PutRequest())
    await stream.done_writing()
    await stream
    assert edge.traced == []


async def test_the_log_line_and_the_histogram_of_a_call_lead_to_its_trace(edge: Edge) -> None:
    with capture_logs([structlog.contextvars.merge_contextvars]) as logged:
        await edge.put(metadata=CALLER)
    trace_id = f"{7:032x}"
    assert [line["trace_id"] for line in logged if line["event"] == "call"] == [trace_id]
    kind, page = exposition(edge.registry, "application/openmetrics-text;version=1.0.0,*/*;q=0.1")
    assert kind.startswith("application/openmetrics-text")
    families = text_string_to_metric_families(page.decode())  # type: ignore[no-untyped-call]
    samples = [each for family in families for each in family.samples]
    assert [each.exemplar.labels for each in samples if each.exemplar] == [{"trace_id": trace_id}]
    kind, page = exposition(edge.registry)
    assert kind.startswith("text/plain")
    assert trace_id not in page.decode()
