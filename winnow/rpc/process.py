"""Sets up a serving process from its settings: logs, traces, event loop, bundle and listeners.

Knows only the settings that all processes have; does not know the services.
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
ServeProcess = Callable[[CollectorRegistry, Tracer], Coroutine[Any, Any, Result]]
"""Serves until the process must end. Registers metrics in the registry, and traces calls."""


class ListenSettings(Protocol):
    """The settings of a process that listens for calls."""

    @property
    def listen(self) -> str:
        """The HOST:PORT to listen on."""

    @property
    def health_listen(self) -> str:
        """The HOST:PORT of another server that has only the health service; empty for none."""

    @property
    def drain_linger(self) -> float:
        """Seconds to continue serving after the first signal."""

    @property
    def drain_grace(self) -> float:
        """Seconds that running calls get to finish after the linger time."""


def run(settings: ProcessSettings, serve_process: ServeProcess[Result]) -> Result:
    """Runs `serve_process` in an event loop, with logs on standard error; returns its result."""
    registry = CollectorRegistry()
    with logging_to_stderr(settings.log_level, settings.log_format is LogFormat.JSON) as logs:
        registry.register(dropped_lines(lambda: logs.dropped))
        share, name = settings.share_to_trace, f"winnow-{settings.table}"
        with tracing(settings.trace_to, share, name, registry) as tracer:
            try:
                return signals.run(serve_process(registry, tracer))
            finally:
                signals.ignore_signals()


async def load_configured_bundle(settings: ModelSettings, registry: CollectorRegistry) -> Bundle:
    """Loads the configured bundle in a thread, and exports its identity as a metric."""
    bundle = await asyncio.to_thread(load_bundle, settings.bundle)
    manifest = bundle.manifest
    BundleMetrics(registry).record_loaded(manifest.name, manifest.version, manifest.fingerprint)
    return bundle


def _health_server(server: Server) -> Server:
    """Returns a server with only the health service, which knows the same service names."""
    uncounted = CallInterceptor(RpcMetrics(CollectorRegistry()))
    security = ServerSecurity(reflection=False)
    return Server(services=server.services, interceptor=uncounted, security=security)


async def serve(
    server: Server,
    settings: ListenSettings,
    prepare: Prepare,
    on_leave: Callable[[], None] = lambda: None,
    extra_listeners: Sequence[Listener] = (),
) -> None:
    """Calls `winnow.rpc.service.serve` with the settings, and adds the health server if set."""
    if settings.health_listen:
        extra_listeners = [
            *extra_listeners,
            Listener(_health_server(server), settings.health_listen),
        ]
    await service.serve(
        server,
        settings.listen,
        prepare,
        linger=settings.drain_linger,
        grace=settings.drain_grace,
        on_leave=on_leave,
        extra_listeners=extra_listeners,
    )
