"""Puts a content node together and runs it."""

import asyncio

import structlog
from prometheus_client import CollectorRegistry

from content_node.reader import open_reader
from content_node.reader.pool import ReaderPool
from content_node.searcher import LocalSearcher
from content_node.servicer import SERVICE, ShardServicer
from content_node.settings import NodeSettings
from content_node.shard import open_shard
from content_node.warmup import warm_up
from winnow.bundle import load_bundle
from winnow.rpc.boundary import Boundary
from winnow.rpc.server import Server
from winnow.rpc.service import serve, serve_metrics
from winnow.settings.common import LogFormat
from winnow.telemetry.logs import configure
from winnow.telemetry.metrics import BundleMetrics, NodeMetrics, RpcMetrics
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_pb2_grpc

_log = structlog.get_logger("content_node")


def run(settings: NodeSettings) -> None:
    """Serves a shard until SIGTERM or SIGINT."""
    configure(settings.log_level, settings.log_format is LogFormat.JSON)
    asyncio.run(_run(settings))


async def _run(settings: NodeSettings) -> None:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry)
    servicer = ShardServicer(settings.default_deadline)
    server = Server([SERVICE], Boundary(RpcMetrics(registry), quiet=True))
    shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    pool = ReaderPool(settings.threads, settings.reader_threads, metrics)

    async def prepare() -> None:
        searcher = await asyncio.to_thread(_load, settings, pool, metrics, BundleMetrics(registry))
        servicer.serve(searcher)

    try:
        await serve(server, settings.listen, prepare, settings.drain_grace)
    finally:
        pool.close()


def _load(
    settings: NodeSettings, pool: ReaderPool, metrics: NodeMetrics, loaded: BundleMetrics
) -> LocalSearcher:
    bundle = load_bundle(settings.bundle)
    shard = open_shard(settings.shard, settings.ef, settings.exact)
    reader = open_reader(
        bundle, Tokenizer(bundle.tokenizer).special, settings.levers, settings.max_tokens
    )
    searcher = LocalSearcher(shard, reader, bundle, pool, metrics)
    warm_up(reader)
    manifest = bundle.manifest
    loaded.loaded(manifest.name, manifest.version, manifest.fingerprint)
    _log.info(
        "shard loaded",
        shard=shard.manifest.shard,
        shards=shard.manifest.shards,
        passages=shard.manifest.passages,
        bundle=manifest.name,
    )
    return searcher
