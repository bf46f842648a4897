"""gRPC servers in this process, on free ports."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from prometheus_client import CollectorRegistry

from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.telemetry.metrics import RpcMetrics


def new_server(*services: str, **options: Any) -> Server:
    """Returns a server with separate metrics; `options` are other arguments of `Server`."""
    interceptor = CallInterceptor(RpcMetrics(CollectorRegistry()))
    return Server(services=services, interceptor=interceptor, **options)


@contextlib.asynccontextmanager
async def listening(server: Server) -> AsyncIterator[str]:
    """Listens on a free port within the context; yields HOST:PORT."""
    try:
        yield f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    finally:
        await server.drain(0)
