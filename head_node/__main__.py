"""Puts a head node together and runs it."""

import asyncio
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.errors import ArtefactError
from winnow.head_node.servicer import ARRIVING, LARGEST, SERVICE, EncoderHeads, HeadNodeServicer
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
    """Applies heads until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings))


async def _run(settings: HeadNodeSettings, registry: CollectorRegistry, tracer: Tracer) -> None:
    metrics = HeadNodeMetrics(registry)
    # texts take milliseconds
    admission = TextAdmission(settings.max_texts, metrics, retry_after=0.05)
    servicer = HeadNodeServicer(admission, settings.default_deadline)
    boundary = CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer)
    security = server_security(settings, CertificateMetrics(registry))
    server = Server(
        services=[SERVICE],
        interceptor=boundary,
        max_message_bytes=LARGEST,
        max_pending_bytes=ARRIVING,
        security=security,
    )
    head_node_pb2_grpc.add_HeadNodeServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    warm_metrics = HeadCacheMetrics(registry)
    threads = FairThreads(settings.threads, "heads")
    opening = FairThreads(1, "open")
    serving: list[LocalHeads] = []

    async def prepare() -> None:
        store, encoder = await opening.run("", partial(_open, settings.store))
        heads = LocalHeads(
            store,
            fingerprint=encoder.fingerprint,
            width=encoder.width,
            budget_bytes=settings.budget_bytes,
            threads=threads,
            metrics=warm_metrics.group(encoder.name),
            refresh=settings.refresh,
        )
        serving.append(heads)
        servicer.serve(EncoderHeads(encoder, heads))
        metrics.ready.set(1)
        _log.info("heads found", store=store.name, encoder=encoder.fingerprint)

    try:
        await process.serve(server, settings, prepare, on_leave=lambda: metrics.ready.set(0))
    finally:
        opening.close(wait=False)  # a store that hangs does not hold up the end
        for heads in serving:
            heads.close()
        await asyncio.to_thread(threads.close)


def _open(place: str) -> tuple[HeadStore, EncoderEntry]:
    """A store and the encoder of its heads; raises ArtefactError if there is no head yet."""
    store = open_store(place)
    encoder = store.encoder()
    if encoder is None:
        raise ArtefactError(
            f"there is no head in {store.name}: publish one with `winnow heads publish`, or name "
            "another store"
        )
    return store, encoder
