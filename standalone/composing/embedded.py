"""A front node with all shards of an index, which a program calls directly, without a port."""

import asyncio
import atexit
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc.aio
import structlog
from prometheus_client import CollectorRegistry

from winnow.client.calls import Call, Metadata
from winnow.content_node.composing.shard import RunningShard
from winnow.errors import NotWritableError, UnavailableError, WinnowError
from winnow.index_directory import shard_directories
from winnow.rpc import request_id
from winnow.rpc.in_process import InProcessServices
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.process import load_configured_bundle
from winnow.standalone.composing.shards import LocalShards
from winnow.standalone.settings import StandaloneSettings
from winnow.stateless.composing.access import open_access
from winnow.stateless.composing.feed import FeedParts, open_feed
from winnow.stateless.composing.front import Front
from winnow.stateless.composing.serving import open_front_parts
from winnow.stateless.early_rejection import EarlyRejection
from winnow.stateless.feed.fed_index import only_fed
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.servicer import FeedServicer
from winnow.stateless.metrics import FrontMetrics, ReadinessMetrics
from winnow.stateless.supervision import BackgroundTasks
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.v1 import feed_pb2_grpc, head_pb2_grpc

_log = structlog.get_logger("standalone")
_loading: dict[Path, list[threading.Thread]] = {}
"""The threads that loaded shards when their opening was cancelled, by index."""
Result = TypeVar("Result")


class EmbeddedServices:
    """The services of a front node in this process. `call` needs no server and no connection."""

    def __init__(
        self,
        services: InProcessServices,
        shards: Sequence[RunningShard],
        *,
        writable: bool,
        serves_heads: bool,
    ) -> None:
        self._services, self._shards = services, shards
        self._writable, self._serves_heads = writable, serves_heads

    async def call(self, call: Call[Result], timeout: float, metadata: Metadata) -> Result:
        """Runs a call and returns its result. Raises the same errors as a client.

        Binds the request id to the log context of the current task.
        """
        if call.stub is feed_pb2_grpc.FeedServiceStub:
            self._require_writable()
        if call.stub is head_pb2_grpc.HeadServiceStub and not self._serves_heads:
            raise UnavailableError("the index was opened without heads: open it with heads=STORE")
        request_id.accept_or_create(metadata)
        method = call.method_of(self._services)
        return call.result(await method(call.request, timeout=timeout, metadata=metadata))

    async def merge(self) -> None:
        """Merges one shard after another. If merges fail, raises the first error at the end."""
        self._require_writable()
        errors = []
        for shard in self._shards:
            try:
                await shard.merge()
            except WinnowError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _require_writable(self) -> None:
        if not self._writable:
            raise NotWritableError("the index was opened for reading: open it with writable=True")


@contextlib.asynccontextmanager
async def open_embedded(
    settings: StandaloneSettings, registry: CollectorRegistry, *, writable: bool
) -> AsyncIterator[EmbeddedServices]:
    """Opens an index, and closes it at the end of the context.

    Raises ArtefactError if the directory has no index, or none of its shards can be loaded.
    """
    _log_by_standard_library()
    await _wait_for_earlier_loading(settings.index)
    directories = shard_directories(settings.index)
    node = settings.node(directories[0], feed=writable)
    services = InProcessServices()
    async with contextlib.AsyncExitStack() as stack:
        front = Front(
            settings=settings,
            bundle=await load_configured_bundle(settings, registry),
            registry=registry,
            metrics=FrontMetrics(registry),
            readiness=ReadinessMetrics(registry),
            runtimes=RuntimeMetrics(registry),
            interceptor=CallInterceptor(RpcMetrics(registry)),
            services=cast("grpc.aio.Server", services),
            server=None,
            rejection=EarlyRejection(),
            access=open_access(settings, registry),
            stack=stack,
        )
        shards = LocalShards(front, node, directories)
        stack.callback(_remember_loading, settings.index, shards.all)
        opened = await open_front_parts(front, shards.source, [shards.part], shards.reader)
        if writable and opened.index is not None:
            index = opened.index
            feed = await open_feed(
                front,
                shards.source,
                index.cluster,
                index.parts,
                FeedParts(front, FeedMetrics(front.registry)),
            )
            choose = only_fed(feed)
            servicer = FeedServicer(choose, settings.feed_deadline)
            feed_pb2_grpc.add_FeedServiceServicer_to_server(servicer, front.services)
        for part in opened.parts:
            await stack.enter_async_context(_run_in_background(part.tasks))
        for part in opened.parts:
            await part.prepare()
        yield EmbeddedServices(
            services, shards.all, writable=writable, serves_heads=settings.serves_heads
        )
        for shard in shards.all:
            shard.start_leaving()


def _remember_loading(index: Path, shards: Sequence[RunningShard]) -> None:
    """Remembers the threads that still load shards of an index after a cancellation.

    The program waits for them before it opens the index again, and before it exits: an exit would
    abort the process in native code.
    """
    found = [each for shard in shards if (each := shard.loading.running_thread) is not None]
    for thread in found:
        atexit.register(thread.join)
    if found:
        earlier = [each for each in _loading.get(index, ()) if each.is_alive()]
        _loading[index] = earlier + found


async def _wait_for_earlier_loading(index: Path) -> None:
    """Waits for threads of an earlier, cancelled opening, which lock shards of the index."""
    for thread in _loading.get(index, ()):  # kept: this wait may be cancelled, too
        await asyncio.to_thread(thread.join)


def _log_by_standard_library() -> None:
    """Sends log events to `logging`, unless the program has configured structlog itself."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
        )


@contextlib.asynccontextmanager
async def _run_in_background(tasks: BackgroundTasks) -> AsyncIterator[None]:
    """Runs tasks until the end of the context. A task that fails is a bug and is logged."""
    running = [asyncio.create_task(_run_and_log_errors(name, run)) for name, run in tasks.items()]
    try:
        yield
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _run_and_log_errors(name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    try:
        await run()
    except Exception:
        _log.exception(f"supervision of {name} ended")
        raise
