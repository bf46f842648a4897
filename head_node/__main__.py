"""Composes and runs a head node."""

import asyncio
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.errors import ArtefactError
from winnow.head_node.servicer import (
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
    SERVICE,
    EncoderHeads,
    HeadNodeServicer,
)
from winnow.head_node.settings import HeadNodeSettings
from winnow.heads.admission import TextAdmission
from winnow.heads.local import LocalHeads
from winnow.heads.manifest import EncoderEntry
from winnow.heads.metrics import HeadCacheMetrics, HeadNodeMetrics
from winnow.heads.store import HeadStore, open_store
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import process
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import serve_metrics
from winnow.security.from_settings import server_security
from winnow.security.metrics import CertificateMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.tracing.tracer import Tracer
from winnow.v1 import head_node_pb2_grpc

_log = structlog.get_logger("head_node")


def run(settings: HeadNodeSettings) -> None:
    """Runs a head node until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings))


async def _run(settings: HeadNodeSettings, registry: CollectorRegistry, tracer: Tracer) -> None:
    metrics = HeadNodeMetrics(registry)
    # a text takes milliseconds, so a short retry suffices
    admission = TextAdmission(settings.max_texts, metrics, retry_after=0.05)
    servicer = HeadNodeServicer(admission, settings.default_deadline)
    interceptor = CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer)
    security = server_security(settings, CertificateMetrics(registry))
    server = Server(
        services=[SERVICE],
        interceptor=interceptor,
        max_message_bytes=MAX_MESSAGE_BYTES,
        max_pending_bytes=MAX_PENDING_BYTES,
        security=security,
    )
    head_node_pb2_grpc.add_HeadNodeServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    cache_metrics = HeadCacheMetrics(registry)
    threads = FairThreads(settings.threads, "heads")
    opening = FairThreads(1, "open")
    opened_heads: list[LocalHeads] = []

    async def prepare() -> None:
        store, encoder = await opening.run("", partial(_open, settings.store))
        heads = LocalHeads(
            store,
            fingerprint=encoder.fingerprint,
            width=encoder.width,
            budget_bytes=settings.budget_bytes,
            threads=threads,
            metrics=cache_metrics.group(encoder.name),
            refresh=settings.refresh,
        )
        opened_heads.append(heads)
        servicer.set_heads(EncoderHeads(encoder, heads))
        metrics.ready.set(1)
        _log.info("head store opened", store=store.name, encoder=encoder.fingerprint)

    try:
        await process.serve(server, settings, prepare, on_leave=lambda: metrics.ready.set(0))
    finally:
        opening.close(wait=False)  # a store that hangs must not delay the shutdown
        for heads in opened_heads:
            heads.close()
        await asyncio.to_thread(threads.close)


def _open(url: str) -> tuple[HeadStore, EncoderEntry]:
    """Returns a store and the encoder of its heads; raises ArtefactError if it has no heads."""
    store = open_store(url)
    encoder = store.encoder()
    if encoder is None:
        raise ArtefactError(
            f"there is no head in {store.name}: publish one with `winnow heads publish`, or name "
            "another store"
        )
    return store, encoder
