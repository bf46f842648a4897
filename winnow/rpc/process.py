"""A serving process as its settings describe it: logs, event loop, bundle, end.

Knows the settings of all processes; knows no service.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from winnow import signals
from winnow.bundle import Bundle, load_bundle
from winnow.rpc import service
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import Listener
from winnow.security.from_settings import ServerSecurity
from winnow.settings.common import LogFormat, ModelSettings, ProcessSettings
from winnow.telemetry.logs import logging_to_stderr
from winnow.telemetry.metrics import BundleMetrics, RpcMetrics, dropped_lines
from winnow.telemetry.tracing.opening import tracing
from winnow.telemetry.tracing.tracer import Tracer

Result = TypeVar("Result")
Prepare = Callable[[], Awaitable[None]]
Served = Callable[[CollectorRegistry, Tracer], Coroutine[Any, Any, Result]]
"""Serves until it is told to end; its metrics go into the registry, its traces to the tracer."""


class Listening(Protocol):
    """The settings of a process that listens."""

    @property
    def listen(self) -> str:
        """HOST:PORT."""

    @property
    def health_listen(self) -> str:
        """HOST:PORT of a server of health alone; empty for none."""

    @property
    def drain_linger(self) -> float:
        """Seconds to serve on after the first signal."""

    @property
    def drain_grace(self) -> float:
        """Seconds that running calls get then."""


def run(settings: ProcessSettings, served: Served[Result]) -> Result:
    """Runs an event loop until `served` has ended, with logs to standard error."""
    registry = CollectorRegistry()
    with logging_to_stderr(settings.log_level, settings.log_format is LogFormat.JSON) as logs:
        registry.register(dropped_lines(lambda: logs.dropped))
        share, name = settings.share_to_trace, f"winnow-{settings.table}"
        with tracing(settings.trace_to, share, name, registry) as tracer:
            try:
                return signals.run(served(registry, tracer))
            finally:
                signals.ignore_signals()


async def bundle_of(settings: ModelSettings, registry: CollectorRegistry) -> Bundle:
    """Loads the bundle of the settings, in a thread, and shows it in the metrics."""
    bundle = await asyncio.to_thread(load_bundle, settings.bundle)
    manifest = bundle.manifest
    BundleMetrics(registry).loaded(manifest.name, manifest.version, manifest.fingerprint)
    return bundle


def _of_health(server: Server) -> Server:
    """A server of the health of the same services, and nothing else."""
    uncounted = CallInterceptor(RpcMetrics(CollectorRegistry()))
    security = ServerSecurity(reflection=False)
    return Server(services=server.services, interceptor=uncounted, security=security)


async def serve(
    server: Server,
    settings: Listening,
    prepare: Prepare,
    leave: Callable[[], None] = lambda: None,
    further: Sequence[Listener] = (),
) -> None:
    """Serves until SIGTERM or SIGINT, as `winnow.rpc.service.serve` does."""
    if settings.health_listen:
        further = [*further, Listener(_of_health(server), settings.health_listen)]
    await service.serve(
        server,
        settings.listen,
        prepare,
        linger=settings.drain_linger,
        grace=settings.drain_grace,
        leave=leave,
        further=further,
    )
