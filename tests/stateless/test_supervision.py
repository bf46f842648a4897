"""A front whose supervision of nodes ends."""

import asyncio

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.cli.local.ports import free_ports
from winnow.errors import UnavailableError, WinnowError
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import serve
from winnow.stateless.supervision import serve_with_task
from winnow.telemetry.metrics import RpcMetrics

SERVING = health_pb2.HealthCheckResponse.SERVING


class Parts:
    """Serving and looking that a test ends, and in which order they ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.serve_on, self.look_on = asyncio.Event(), asyncio.Event()
        self.fails: Exception | None = None

    async def serving(self) -> None:
        await self._part("serving", self.serve_on)

    async def looking(self) -> None:
        await self._part("looking", self.look_on)

    async def _part(self, name: str, on: asyncio.Event) -> None:
        try:
            await on.wait()
            if self.fails:
                raise self.fails
        finally:
            self.ended.append(name)

    def run(self) -> "asyncio.Task[None]":
        return asyncio.create_task(serve_with_task(self.serving(), self.looking()))


async def test_nodes_are_looked_after_until_serving_has_ended() -> None:
    parts = Parts()
    running = parts.run()
    parts.serve_on.set()
    await asyncio.wait_for(running, LONG)
    assert parts.ended == ["serving", "looking"]


async def test_what_ends_the_serving_is_raised() -> None:
    parts = Parts()
    parts.fails = UnavailableError("cannot listen")
    parts.serve_on.set()
    with pytest.raises(UnavailableError, match="cannot listen"):
        await asyncio.wait_for(parts.run(), LONG)
    assert parts.ended == ["serving", "looking"]


@pytest.mark.parametrize("fails", [ZeroDivisionError("a bug"), None])
async def test_serving_ends_with_an_error_when_the_looking_does(fails: Exception | None) -> None:
    parts = Parts()
    parts.fails = fails
    parts.look_on.set()
    with (
        capture_logs() as logs,
        pytest.raises(
            WinnowError, match=r"the background task of content nodes ended .* restart the front"
        ),
    ):
        await asyncio.wait_for(parts.run(), LONG)
    assert parts.ended == ["looking", "serving"]
    assert [(entry["event"], entry["exc_info"]) for entry in logs] == [
        ("supervision of content nodes ended", fails)
    ]


async def test_cancelled_both_end() -> None:
    parts = Parts()
    running = parts.run()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert parts.ended == ["serving", "looking"]


async def test_a_front_that_nobody_looks_after_says_that_it_does_not_serve() -> None:
    parts = Parts()
    parts.fails = ZeroDivisionError("a bug")
    [port] = free_ports(1)
    server = Server(services=[], interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())))

    async def prepare() -> None:
        pass

    serving = serve(server, f"127.0.0.1:{port}", prepare, linger=LONG, grace=LONG)
    running = asyncio.create_task(serve_with_task(serving, parts.looking()))
    said = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        watched = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=LONG)
        async for reply in watched:
            said.append(reply.status)
            if reply.status == SERVING:
                parts.look_on.set()
            elif parts.look_on.is_set():
                break
    assert said[-1] == health_pb2.HealthCheckResponse.NOT_SERVING
    with pytest.raises(WinnowError, match="the background task of content nodes ended"):
        await asyncio.wait_for(running, LONG)
