"""What the parts of a front share, and how they are served together."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.rpc import process
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.process import Prepare, load_configured_bundle
from winnow.rpc.server import Server
from winnow.rpc.service import Listener, serve_metrics
from winnow.stateless.answer.servicer import SERVICE
from winnow.stateless.composing.access import FrontAccess, open_access
from winnow.stateless.early_rejection import EarlyRejection
from winnow.stateless.heads.servicer import ARRIVING, LARGEST
from winnow.stateless.heads.servicer import SERVICE as HEAD_SERVICE
from winnow.stateless.http.call import HttpOperation
from winnow.stateless.metrics import FrontMetrics
from winnow.stateless.settings import FrontSettings
from winnow.stateless.showing.servicer import SERVICE as CLUSTER_SERVICE
from winnow.stateless.showing.work import Work
from winnow.stateless.supervision import supervised
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.telemetry.tracing.tracer import Tracer

_LEAST_STREAMS = 128
"""Least number of calls that a connection may have in hand. The usual number is twice that of the
places, so that a client that has them all can still be refused, and can watch the health.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The collaborators that all parts of a front share."""

    settings: FrontSettings
    bundle: Bundle
    registry: CollectorRegistry
    metrics: FrontMetrics
    runtimes: RuntimeMetrics
    boundary: CallInterceptor
    """Wraps the calls of all its servers."""
    server: Server
    rejection: EarlyRejection
    """Refuses calls early, by a rule of each service."""
    access: FrontAccess
    """Says who may call its servers, and how it calls other nodes."""
    stack: contextlib.AsyncExitStack
    """Closes what was opened, the last one first."""
    calls: list[HttpOperation] = field(default_factory=list)
    """The HTTP operations of its parts, if HTTP is served."""
    work: Work = field(default_factory=Work)
    """The parts that do work, for showing."""


async def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Part:
    """The tasks and ports of a part of a front, beside its calls."""

    prepare: Prepare = _nothing
    """Is awaited before the front is ready, after the parts before it."""
    beside: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)
    """Tasks that run as long as the front serves, by names for errors; see `supervised`. If one
    ends, so does the front.
    """
    servers: Sequence[Listener] = ()
    """Further ports that the front serves on."""


@contextlib.asynccontextmanager
async def opened(
    settings: FrontSettings, registry: CollectorRegistry, tracer: Tracer
) -> AsyncIterator[Front]:
    """A front without parts; closes what its parts opened at the end."""
    metrics = FrontMetrics(registry)
    bundle = await load_configured_bundle(settings, registry)
    rejection = EarlyRejection()
    boundary = CallInterceptor(RpcMetrics(registry), tracer=tracer)
    access = open_access(settings, registry)
    server = _server(settings, boundary, rejection, access)
    serve_metrics(settings.metrics_listen, registry)
    async with contextlib.AsyncExitStack() as stack:
        yield Front(
            settings=settings,
            bundle=bundle,
            registry=registry,
            metrics=metrics,
            runtimes=RuntimeMetrics(registry),
            boundary=boundary,
            server=server,
            rejection=rejection,
            access=access,
            stack=stack,
        )


async def serve(front: Front, parts: Iterable[Part]) -> None:
    """Serves until SIGTERM or SIGINT, with the tasks of all parts."""
    parts = tuple(parts)

    async def prepare() -> None:
        for part in parts:
            await part.prepare()
        front.metrics.ready.set(1)

    further = [each for part in parts for each in part.servers]
    serving: Coroutine[Any, Any, None] = process.serve(
        front.server,
        front.settings,
        prepare,
        on_leave=lambda: front.metrics.ready.set(0),
        extra_listeners=further,
    )
    for beside in (front.access.beside, *(part.beside for part in parts)):
        for others, look_after in beside.items():
            serving = supervised(serving, look_after(), others)
    await serving


def _server(
    settings: FrontSettings,
    boundary: CallInterceptor,
    rejection: EarlyRejection,
    access: FrontAccess,
) -> Server:
    services = [CLUSTER_SERVICE, *([SERVICE] if settings.serves_answers else [])]
    streams = max(_LEAST_STREAMS, 2 * settings.max_in_flight)
    made = partial(
        Server,
        interceptor=boundary,
        reject=access.guarded(rejection),
        max_streams=streams,
        security=access.security,
    )
    if not settings.serves_heads:
        return made(services=services)
    return made(
        services=[*services, HEAD_SERVICE], max_message_bytes=LARGEST, max_pending_bytes=ARRIVING
    )
