"""Puts a content node together and runs it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.content_node.admission import AdmittedSearcher
from winnow.content_node.feed_servicer import FEED_SERVICE, LARGEST_WRITE, ShardFeedServicer
from winnow.content_node.file_changes import ServingStatus, watch
from winnow.content_node.identity import shard_info
from winnow.content_node.journal.composing import FedShard
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.room import RoomMetrics
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.loading import Loading
from winnow.content_node.merging.child import MergeChild
from winnow.content_node.merging.merger import Merger
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.merging.policy import MergePolicy
from winnow.content_node.merging.tidying import tidy
from winnow.content_node.metrics import MergeMetrics, NodeMetrics, WriteMetrics
from winnow.content_node.pulling import pull_shard
from winnow.content_node.reader import open_reader
from winnow.content_node.reader.pool import ReaderPool
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.servicer import LARGEST, SERVICE, ShardServicer
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard import StoredSegment, open_shard
from winnow.content_node.snapshots.last_snapshot import SnapshotMetrics
from winnow.content_node.startup_checks import check_settings, shard_advice
from winnow.content_node.supervision import keep_running
from winnow.content_node.warmup import warm_up
from winnow.domain.shard import ShardInfo
from winnow.errors import ArtefactError, IdentityError, NotLoadedError
from winnow.heap import HeapTrimmer, bound_arenas, give_back, trimming
from winnow.inference.niceness import give_way
from winnow.inference.runtime import InferenceOptions
from winnow.policy.pace import Pace
from winnow.rpc import process
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import serve_metrics
from winnow.security.from_settings import server_security
from winnow.security.metrics import CertificateMetrics
from winnow.settings.common import cores
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.telemetry.tracing.tracer import Tracer
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_feed_pb2_grpc, shard_pb2_grpc

_log = structlog.get_logger("content_node")
_HALF_LIFE = 2.0
"""Seconds after which a measured reading speed counts half: long compared with a call, short
compared with changes of the machine's load.
"""
_MESSAGES = 32
"""Messages of the largest size that may arrive at the same time."""
_LOOK_EVERY = 2.0
"""Seconds between looks at the shard's files: two system calls for each file."""


def run(settings: NodeSettings) -> None:
    """Serves a shard until SIGTERM or SIGINT, which also end a process that is loading."""
    bound_arenas()
    process.run(settings, partial(_run, settings)).leave_behind()


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A shard, and the searcher that answers from it."""

    live: LiveShard
    searcher: AdmittedSearcher
    info: ShardInfo


async def _run(
    settings: NodeSettings, registry: CollectorRegistry, tracer: Tracer
) -> Loading[_Loaded]:
    metrics = NodeMetrics(registry)
    servicer = ShardServicer(settings.default_deadline)
    feed = ShardFeedServicer(settings.default_deadline)
    server = _server(settings, registry, tracer)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server.grpc)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(feed, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    bundle = await process.load_configured_bundle(settings, registry)
    check_settings(settings, bundle)
    pool = ReaderPool(settings.threads, settings.reader_threads, metrics, nice=settings.reader_nice)
    choosing = RuntimeMetrics(registry).choosing(bundle.manifest.name)
    options = replace(settings.inference, choosing=choosing)
    gone = HeapTrimmer(trimming()).soon
    loading = Loading(
        partial(_load, settings, bundle, options, pool, metrics, WriteMetrics(registry), gone)
    )
    status = ServingStatus(servicer, server, metrics)
    merge_metrics = MergeMetrics(registry)
    watching: set[asyncio.Task[None]] = set()
    fed: list[FedShard] = []

    async def prepare() -> None:
        try:
            loaded = await loading.result()
        except (ArtefactError, IdentityError) as error:
            servicer.fail(str(error))
            feed.fail(str(error))
            raise NotLoadedError(str(error)) from error
        servicer.serve(loaded.searcher)
        encoding = bundle.manifest.encoding_fingerprint
        fed.append(
            FedShard(
                journal=settings.journal,
                shard=loaded.live,
                info=loaded.info,
                encoding_fingerprint=encoding,
                registry=registry,
                skew=settings.journal_skew,
            )
        )
        feed.serve(fed[0].start(status.stopped_following), loaded.info, encoding)
        metrics.ready.set(1)
        RoomMetrics(registry, settings.shard)
        SnapshotMetrics(registry, settings.shard)
        looking = partial(watch, loaded.live.change, status.files_changed, _LOOK_EVERY)
        watching.add(asyncio.create_task(keep_running("watching the shard's files", looking)))
        if settings.feed:
            merger = _merger(settings, bundle, loaded.live, merge_metrics)
            watching.add(asyncio.create_task(keep_running("merging", merger.run)))

    def leave() -> None:
        for task in watching:
            task.cancel()
        servicer.leave()
        metrics.ready.set(0)

    try:
        await process.serve(server, settings, prepare, leave)
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        for each in fed:
            await each.close()
        pool.close()
    return loading


def _server(settings: NodeSettings, registry: CollectorRegistry, tracer: Tracer) -> Server:
    largest = LARGEST_WRITE if settings.feed else LARGEST
    return Server(
        services=[SERVICE, FEED_SERVICE],
        interceptor=CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer),
        max_message_bytes=largest,
        max_pending_bytes=_MESSAGES * largest,
        security=server_security(settings, CertificateMetrics(registry)),
    )


def _load(
    settings: NodeSettings,
    bundle: Bundle,
    options: InferenceOptions,
    pool: ReaderPool,
    metrics: NodeMetrics,
    feed_metrics: WriteMetrics,
    gone: Callable[[], None],
) -> _Loaded:
    # other nodes of this machine may be serving while this one starts
    give_way(settings.reader_nice)
    if settings.pull:
        pull_shard(settings.pull, settings.shard)
    tokenizer = Tokenizer(bundle.tokenizer)
    live = open_live(
        settings.shard,
        partial(_open_base, settings, bundle.manifest.lower_fingerprint),
        partial(WriteLimits.of, settings, tokenizer.vocabulary),
        feed_metrics,
        feeding=settings.feed,
    )
    try:
        return _answering(settings, bundle, options, tokenizer, pool, metrics, live, gone)
    except BaseException:
        live.abandon()
        raise


def _answering(
    settings: NodeSettings,
    bundle: Bundle,
    options: InferenceOptions,
    tokenizer: Tokenizer,
    pool: ReaderPool,
    metrics: NodeMetrics,
    live: LiveShard,
    gone: Callable[[], None],
) -> _Loaded:
    shard = live.base
    reader = open_reader(bundle, tokenizer.special, options, settings.max_tokens)
    pace = Pace(_HALF_LIFE, time.monotonic)
    searcher = LocalSearcher(
        live.view,
        reader,
        bundle,
        pool,
        pace=pace,
        metrics=metrics,
        journaled=bool(settings.journal),
        gone=gone,
    )
    live.on_new_view(searcher.serve)
    # one thread reads here; when there is much to do each core does
    pace.assume(warm_up(reader) / min(settings.threads, cores()))
    for advice in shard_advice(shard, settings.shard, bundle):
        _log.warning(advice, shard=shard.manifest.shard)
    _log.info(
        "shard loaded",
        shard=shard.manifest.shard,
        shards=shard.manifest.shards,
        passages=live.view.passages,
        sequence=live.view.sequence,
        bundle=bundle.manifest.name,
    )
    give_back()  # memory freed by loading
    admitted = AdmittedSearcher(
        searcher, settings.max_reads, pace=pace, clock=time.monotonic, metrics=metrics
    )
    return _Loaded(live, admitted, shard_info(live.view, bundle))


def _open_base(settings: NodeSettings, states_of: str, trimmed: int) -> StoredSegment:
    opened = partial(_open_segment, settings, states_of)
    return open_newest(settings.shard, trimmed, opened, feeding=settings.feed)


def _open_segment(settings: NodeSettings, states_of: str, directory: Path) -> StoredSegment:
    return open_shard(directory, settings.ef, settings.exact, settings.exact_up_to, states_of)


def _merger(
    settings: NodeSettings, bundle: Bundle, live: LiveShard, metrics: MergeMetrics
) -> Merger[StoredSegment]:
    # at normal priority: hnswlib holds the GIL while it loads a graph, and a thread of low priority
    # would block the event loop for longer
    open_merged = partial(_open_segment, settings, bundle.manifest.lower_fingerprint)

    return Merger(
        shard=live,
        policy=MergePolicy(settings.merge_after, settings.max_unmerged),
        begin=lambda base, upto: MergeChild(
            base=base, shard=settings.shard, upto=upto, bundle=bundle.directory
        ),
        open_base=open_merged,
        tidy=partial(tidy, settings.shard),
        metrics=metrics,
    )
