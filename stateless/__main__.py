"""Puts a front node together and runs it."""

import asyncio

import structlog
from prometheus_client import CollectorRegistry

from stateless import cluster
from stateless.admission import Defaults, Gate
from stateless.answering import Answerer
from stateless.encoding import EncodingCache, QuestionEncoder
from stateless.remote import RemoteSearcher
from stateless.search import Limits
from stateless.servicer import SERVICE, AnswerServicer
from stateless.settings import FrontSettings
from winnow.bundle import Bundle, load_bundle
from winnow.inference.encoder import open_question_encoder
from winnow.rpc.boundary import Boundary
from winnow.rpc.channel import open_channel
from winnow.rpc.server import Server
from winnow.rpc.service import serve, serve_metrics
from winnow.settings.common import LogFormat
from winnow.telemetry.logs import configure
from winnow.telemetry.metrics import BundleMetrics, FrontMetrics, RpcMetrics
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2_grpc

_log = structlog.get_logger("stateless")


def run(settings: FrontSettings) -> None:
    """Answers questions until SIGTERM or SIGINT."""
    configure(settings.log_level, settings.log_format is LogFormat.JSON)
    asyncio.run(_run(settings))


async def _run(settings: FrontSettings) -> None:
    registry = CollectorRegistry()
    metrics = FrontMetrics(registry)
    bundle = await asyncio.to_thread(load_bundle, settings.bundle)
    manifest = bundle.manifest
    BundleMetrics(registry).loaded(manifest.name, manifest.version, manifest.fingerprint)
    defaults = Defaults(
        settings.passages_to_read,
        settings.answers,
        settings.read_scope,
        manifest.reader.max_answer_tokens,
        settings.max_loss,
    )
    gate = Gate(settings.max_in_flight)
    servicer = AnswerServicer(defaults, gate, settings.default_deadline, metrics)
    server = Server([SERVICE], Boundary(RpcMetrics(registry)))
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    channels = {address: open_channel(address) for address in settings.shards}
    encoder = _encoder(bundle, settings, metrics)

    async def prepare() -> None:
        await asyncio.to_thread(encoder.warm_up)
        shards = [RemoteSearcher(channel, address) for address, channel in channels.items()]
        formed = await cluster.form(shards, manifest.fingerprint)
        _log.info("index found", shards=len(formed.infos))
        servicer.serve(
            Answerer(
                encoder,
                formed,
                manifest.score.no_answer_below,
                manifest.stopping_rule,
                Limits(settings.merge_reserve, settings.retrieve_share, settings.first_look),
                metrics,
            )
        )

    try:
        await serve(
            server,
            settings.listen,
            prepare,
            linger=settings.drain_linger,
            grace=settings.drain_grace,
        )
    finally:
        encoder.close()
        for channel in channels.values():
            await channel.close()


def _encoder(bundle: Bundle, settings: FrontSettings, metrics: FrontMetrics) -> QuestionEncoder:
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special, settings.levers)
    cache = EncodingCache(settings.cache_entries)
    return QuestionEncoder(bundle, tokenizer, model, cache, settings.encoder_threads, metrics)
