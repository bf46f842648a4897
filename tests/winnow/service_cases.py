"""The life of a process, over real gRPC and real signals."""

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.cli.local.ports import free_ports
from winnow.errors import ArtefactError, NotLoadedError, UnavailableError
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import Listener, serve
from winnow.telemetry.metrics import RpcMetrics

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@dataclass
class Process:
    """A process that serves nothing but its health."""

    prepare: Callable[[], Awaitable[None]]
    linger: float = LONG
    port: int = field(default_factory=lambda: free_ports(1)[0])
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        server = Server(services=[], interceptor=CallInterceptor(RpcMetrics(CollectorRegistry())))
        listen = f"127.0.0.1:{self.port}"
        await serve(
            server, listen, self.prepare, linger=self.linger, grace=0, on_leave=self.left.set
        )

    async def health(self) -> AsyncIterator[int]:
        """What it says of itself, whenever that changes."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            watched = stub.Watch(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=LONG)
            async for reply in watched:
                yield reply.status

    async def ask(self) -> int:
        """What it says of itself now."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            reply = await stub.Check(
                health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=LONG
            )
            return int(reply.status)


async def nothing() -> None:
    pass


async def test_a_process_that_leaves_serves_on_until_a_second_signal() -> None:
    process = Process(nothing)
    running = asyncio.create_task(process.run())
    async for status in process.health():
        if status == SERVING:
            assert not process.left.is_set()
            signal.raise_signal(signal.SIGTERM)
        elif process.left.is_set():
            break
    assert await process.ask() == NOT_SERVING
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, LONG / 2)


async def test_a_signal_that_came_before_it_listened_ends_it_without_a_fault() -> None:
    """While a process is put together its signals cancel it, as soon as it waits for anything."""
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: faults.append(about))
    process = Process(nothing)
    running = asyncio.create_task(process.run())
    asyncio.get_running_loop().call_soon(running.cancel)
    with pytest.raises(asyncio.CancelledError):
        await running
    gc.collect()
    assert not faults
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", process.port)


async def test_lingering_ends_by_itself() -> None:
    process = Process(nothing, linger=0.01)
    running = asyncio.create_task(process.run())
    async for status in process.health():
        if status == SERVING:
            break
    signal.raise_signal(signal.SIGINT)
    await asyncio.wait_for(running, LONG)


async def test_a_process_that_could_not_load_stays_and_ends_without_lingering() -> None:
    failed = asyncio.Event()

    async def prepare() -> None:
        failed.set()
        raise NotLoadedError("graph.hnsw is damaged")

    process = Process(prepare)
    running = asyncio.create_task(process.run())
    await asyncio.wait_for(failed.wait(), LONG)
    assert await process.ask() == NOT_SERVING
    assert not running.done()
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, LONG / 2)
    assert process.left.is_set()


async def test_any_other_failure_ends_the_process() -> None:
    async def prepare() -> None:
        raise ArtefactError("no such bundle")

    with pytest.raises(ArtefactError, match="no such bundle"):
        await asyncio.wait_for(Process(prepare).run(), LONG)


async def test_a_signal_while_it_loads_ends_it_at_once() -> None:
    loading = asyncio.Event()

    async def prepare() -> None:
        loading.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(Process(prepare).run())
    await asyncio.wait_for(loading.wait(), LONG)
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, LONG / 2)


async def test_further_servers_begin_and_end_with_the_first() -> None:
    boundary = CallInterceptor(RpcMetrics(CollectorRegistry()))
    ports = free_ports(2)
    further = [Listener(Server(services=[], interceptor=boundary), f"127.0.0.1:{ports[1]}")]
    listen = f"127.0.0.1:{ports[0]}"
    one = Server(services=[], interceptor=boundary)
    running = asyncio.create_task(
        serve(one, listen, nothing, linger=0, grace=0, extra_listeners=further)
    )
    for port in ports:
        async for status in Process(nothing, port=port).health():
            if status == SERVING:
                break
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(running, LONG)


async def test_if_a_further_server_cannot_listen_none_does() -> None:
    boundary = CallInterceptor(RpcMetrics(CollectorRegistry()))
    taken = Server(services=[], interceptor=boundary)
    port = await taken.start("127.0.0.1:0")
    (free,) = free_ports(1)
    further = [Listener(Server(services=[], interceptor=boundary), f"127.0.0.1:{port}")]
    with pytest.raises(UnavailableError, match="cannot listen"):
        await serve(
            Server(services=[], interceptor=boundary),
            f"127.0.0.1:{free}",
            nothing,
            linger=0,
            grace=0,
            extra_listeners=further,
        )
    again = Server(services=[], interceptor=boundary)
    assert await again.start(f"127.0.0.1:{free}") == free
    await again.drain(0)
    await taken.drain(0)
