"""Opens what the parts of a front share, and runs all parts."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc.aio
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
from winnow.stateless.heads.servicer import MAX_MESSAGE_BYTES, MAX_PENDING_BYTES
from winnow.stateless.heads.servicer import SERVICE as HEAD_SERVICE
from winnow.stateless.http.call import HttpOperation
from winnow.stateless.metrics import FrontMetrics, ReadinessMetrics
from winnow.stateless.passages.servicer import SERVICE as PASSAGE_SERVICE
from winnow.stateless.reading.servicer import MAX_MESSAGE_BYTES as MAX_TEXTS
from winnow.stateless.reading.servicer import MAX_PENDING_BYTES as MAX_PENDING_TEXTS
from winnow.stateless.reading.servicer import SERVICE as READ_SERVICE
from winnow.stateless.settings import FrontSettings
from winnow.stateless.status.servicer import SERVICE as CLUSTER_SERVICE
from winnow.stateless.status.work import FrontWork
from winnow.stateless.supervision import BackgroundTasks, serve_with_task
from winnow.telemetry.labelled import LabelledRegistries
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.telemetry.tracing.tracer import Tracer

_MIN_STREAMS = 128
"""Smallest limit of concurrent calls on a connection.

The limit is twice --max-in-flight if this is more. So a client whose questions fill --max-in-flight
can still watch the health and get refusals.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """What all parts of a front share: settings, servers, metrics and access."""

    settings: FrontSettings
    bundle: Bundle
    registry: CollectorRegistry
    metrics: FrontMetrics
    """Metrics of questions."""
    readiness: ReadinessMetrics
    runtimes: RuntimeMetrics
    interceptor: CallInterceptor
    """Wraps the calls of all servers of the front."""
    services: grpc.aio.Server
    """The gRPC server to which the parts add their services."""
    server: Server | None
    """The server that listens; None in a program that calls the services directly."""
    rejection: EarlyRejection
    """Refuses calls early, by the rule that each service adds."""
    access: FrontAccess
    """Keys and certificates of the front's servers, and channels to other nodes."""
    stack: contextlib.AsyncExitStack
    """Closes the parts in the reverse order of their opening."""
    http_operations: list[HttpOperation] = field(default_factory=list)
    """The HTTP operations that the parts have added, which are served if HTTP is enabled."""
    work: FrontWork = field(default_factory=FrontWork)
    """The parts that report their work in the state of the front."""
    by_index: LabelledRegistries | None = None
    """Gets the metrics of named indexes, with a label; None without a catalog."""


async def _do_nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class FrontPart:
    """A part of a front: how it is prepared, its background tasks, and its further ports."""

    prepare: Prepare = _do_nothing
    """Is awaited before the front is ready, after the earlier parts have been prepared."""
    tasks: BackgroundTasks = field(default_factory=dict)
    """Tasks that run while the front serves. If a task ends, the front ends; see
    `serve_with_task`.
    """
    servers: Sequence[Listener] = ()
    """Servers on further ports."""
    start_leaving: Callable[[], None] = lambda: None
    """Is called when the front starts to leave."""


@contextlib.asynccontextmanager
async def open_front(
    settings: FrontSettings, registry: CollectorRegistry, tracer: Tracer
) -> AsyncIterator[Front]:
    """Opens a front without parts. Closes all parts that were added at the end of the context."""
    by_index = LabelledRegistries(registry, "index") if settings.indexes else None
    bundle = await load_configured_bundle(settings, registry)
    rejection = EarlyRejection()
    interceptor = CallInterceptor(RpcMetrics(registry), tracer=tracer)
    access = open_access(settings, registry)
    server = _server(settings, interceptor, rejection, access)
    serve_metrics(settings.metrics_listen, registry)
    async with contextlib.AsyncExitStack() as stack:
        yield Front(
            settings=settings,
            bundle=bundle,
            registry=registry,
            metrics=FrontMetrics(registry if by_index is None else by_index.of("")),
            readiness=ReadinessMetrics(registry),
            runtimes=RuntimeMetrics(registry),
            interceptor=interceptor,
            services=server.grpc,
            server=server,
            rejection=rejection,
            access=access,
            stack=stack,
            by_index=by_index,
        )


async def serve_parts(front: Front, parts: Iterable[FrontPart]) -> None:
    """Prepares all parts, and runs the servers and tasks until SIGTERM or SIGINT."""
    assert front.server is not None  # `open_front` has opened the server
    parts = tuple(parts)

    async def prepare() -> None:
        for part in parts:
            await part.prepare()
        front.readiness.ready.set(1)

    def leave() -> None:
        front.readiness.ready.set(0)
        for part in parts:
            part.start_leaving()

    serving: Coroutine[Any, Any, None] = process.serve(
        front.server,
        front.settings,
        prepare,
        on_leave=leave,
        extra_listeners=[each for part in parts for each in part.servers],
    )
    for tasks in (front.access.tasks, *(part.tasks for part in parts)):
        for name, start in tasks.items():
            serving = serve_with_task(serving, start(), name)
    await serving


def _server(
    settings: FrontSettings,
    interceptor: CallInterceptor,
    rejection: EarlyRejection,
    access: FrontAccess,
) -> Server:
    services = [
        CLUSTER_SERVICE,
        *([SERVICE, PASSAGE_SERVICE] if settings.serves_answers else []),
        *([HEAD_SERVICE] if settings.serves_heads else []),
        *([READ_SERVICE] if settings.reader_threads else []),
    ]
    sizes: dict[str, int] = {}
    if settings.reader_threads:
        sizes = {"max_message_bytes": MAX_TEXTS, "max_pending_bytes": MAX_PENDING_TEXTS}
    elif settings.serves_heads:
        sizes = {"max_message_bytes": MAX_MESSAGE_BYTES, "max_pending_bytes": MAX_PENDING_BYTES}
    return Server(
        services=services,
        interceptor=interceptor,
        reject=access.with_key_check(rejection),
        max_streams=max(_MIN_STREAMS, 2 * settings.max_in_flight),
        security=access.security,
        **sizes,
    )
