"""Composes and runs an encoder node."""

import asyncio
import time
from dataclasses import replace
from functools import partial

import structlog
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle
from winnow.domain.encoder import EncoderInfo
from winnow.encoder_node.admission import AdmittedEncoder
from winnow.encoder_node.metrics import EncoderMetrics
from winnow.encoder_node.servicer import SERVICE, EncoderServicer
from winnow.encoder_node.settings import EncoderSettings
from winnow.inference.batching import BatchingTextEncoder, check_can_batch
from winnow.inference.encoder import Encoder, open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.inference.options import InferenceOptions
from winnow.rpc import process
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.service import serve_metrics
from winnow.security.from_settings import server_security
from winnow.security.metrics import CertificateMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.telemetry.tracing.tracer import Tracer
from winnow.text.encoder import SPECIAL_TOKENS, TextEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import encoder_pb2_grpc

_log = structlog.get_logger("encoder_node")


def run(settings: EncoderSettings) -> None:
    """Runs an encoder node until SIGTERM or SIGINT."""
    process.run(settings, partial(_run, settings))


async def _run(settings: EncoderSettings, registry: CollectorRegistry, tracer: Tracer) -> None:
    metrics = EncoderMetrics(registry)
    bundle = await process.load_configured_bundle(settings, registry)
    tokenizer = await asyncio.to_thread(Tokenizer, bundle.tokenizer)
    choosing = RuntimeMetrics(registry).chooser(bundle.manifest.name)
    options = replace(settings.inference, chooser=choosing)
    model = await asyncio.to_thread(_open, bundle, tokenizer, options)
    check_can_batch(
        settings.batch_limits.texts, bundle.manifest.encoder.effective_question_precision
    )
    info = _info(bundle, model)
    interceptor = CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer)
    servicer = EncoderServicer(info, tokenizer.vocabulary, settings.default_deadline)
    server = Server(
        services=[SERVICE],
        interceptor=interceptor,
        security=server_security(settings, CertificateMetrics(registry)),
    )
    encoder_pb2_grpc.add_EncoderServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    encoder = _text_encoder(model, settings)

    async def prepare() -> None:
        await encoder.warm_up(info.max_tokens)
        servicer.set_encoder(AdmittedEncoder(encoder, settings.max_texts, time.monotonic, metrics))
        metrics.ready.set(1)
        _log.info("encoder loaded", bundle=info.bundle, fingerprint=info.fingerprint)

    try:
        await process.serve(server, settings, prepare, on_leave=lambda: metrics.ready.set(0))
    finally:
        await asyncio.to_thread(encoder.close)


def _open(bundle: Bundle, tokenizer: Tokenizer, options: InferenceOptions) -> Encoder:
    states = bool(bundle.manifest.encoder.states)
    return open_question_encoder(bundle, tokenizer.special, options, states, token_vectors=True)


def _info(bundle: Bundle, model: Encoder) -> EncoderInfo:
    manifest, entry = bundle.manifest, bundle.manifest.encoder
    _, states = model.with_states([])
    return EncoderInfo(
        bundle=manifest.name,
        fingerprint=manifest.states_fingerprint,
        dimension=entry.dimension,
        width=0 if states is None else states.shape[1],
        # texts for heads may be longer than questions: as long as passages
        max_tokens=max(entry.max_question_tokens, entry.max_passage_tokens) - SPECIAL_TOKENS,
        token_vectors=manifest.token_vectors_fingerprint,
    )


def _text_encoder(model: Encoder, settings: EncoderSettings) -> TextEncoder:
    limits = settings.batch_limits
    if limits.texts > 1:
        return BatchingTextEncoder(model, limits, settings.runs)
    return LocalTextEncoder(model, settings.runs)
