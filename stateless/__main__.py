"""Puts a front node together and runs it."""

import asyncio
import random
import time

import structlog
from prometheus_client import CollectorRegistry

from stateless.answer.admission import Admission
from stateless.answer.answering import Answerer
from stateless.answer.calls import Limits
from stateless.answer.core import AnswerCore
from stateless.answer.servicer import SERVICE, AnswerServicer
from stateless.answer.validation import Defaults
from stateless.cluster.cluster import Cluster
from stateless.cluster.discovery import Discovery
from stateless.cluster.formation import Formation
from stateless.cluster.membership import Encoding
from stateless.cluster.node import Node
from stateless.cluster.resolving import resolver
from stateless.encoding import QuestionEncoder
from stateless.metrics import AdmissionMetrics, ClusterMetrics, FrontMetrics, ReplicaMetrics
from stateless.policy.capacity import seconds_per_read
from stateless.replicas.remote import RemoteSearcher
from stateless.replicas.replicated import ReplicatedSearcher
from stateless.settings import FrontSettings
from stateless.supervision import supervised
from winnow.bundle import Bundle, load_bundle
from winnow.errors import OverloadedError
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.policy.load import Load
from winnow.rpc import client_key
from winnow.rpc.boundary import Boundary
from winnow.rpc.channel import open_channel
from winnow.rpc.intake import Metadata
from winnow.rpc.server import Server
from winnow.rpc.service import serve, serve_metrics
from winnow.settings.common import LogFormat
from winnow.signals import ignore_signals
from winnow.telemetry.logs import logging_to_stderr
from winnow.telemetry.metrics import BundleMetrics, LogMetrics, RpcMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2_grpc

_log = structlog.get_logger("stateless")
_LEAST_STREAMS = 128
"""Calls that a connection may have in hand, at least; else twice as many as there are places, so
that who has them all can still be refused, watch the health, and look at the services.
"""


def run(settings: FrontSettings) -> None:
    """Answers questions until SIGTERM or SIGINT."""
    registry = CollectorRegistry()
    with logging_to_stderr(settings.log_level, settings.log_format is LogFormat.JSON) as logs:
        LogMetrics(registry, lambda: logs.dropped)
        try:
            asyncio.run(_run(settings, registry))
        finally:
            ignore_signals()


async def _run(settings: FrontSettings, registry: CollectorRegistry) -> None:
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
        settings.retriever,
        partial_results=settings.partial_results,
        patience=settings.patience,
    )
    admissions = AdmissionMetrics(registry)

    def pace() -> float | None:
        shards = formation.view.replicas.values()
        seconds = seconds_per_read([[nodes.seconds_per_read(a) for a in own] for own in shards])
        admissions.pace.set(seconds or 0.0)
        return seconds

    def others() -> int:
        shards = formation.view.replicas.values()
        return sum(nodes.others_reads(address) for own in shards for address in own)

    def asked() -> None:
        nodes.asked()

    load = Load(settings.admission, time.monotonic, pace, others)
    admission = Admission(load, settings.max_in_flight, admissions, usual=settings.passages_to_read)
    core = AnswerCore(defaults, admission, metrics, asked)
    servicer = AnswerServicer(core, settings.default_deadline)

    def door(method: str, metadata: Metadata) -> OverloadedError | None:
        asking = method.startswith(f"/{SERVICE}/")
        return admission.refusal(client_key.of_metadata(metadata)) if asking else None

    streams = max(_LEAST_STREAMS, 2 * settings.max_in_flight)
    server = Server([SERVICE], Boundary(RpcMetrics(registry)), door=door, streams=streams)
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
    serve_metrics(settings.metrics_listen, registry)
    encoder = _encoder(bundle, settings, metrics)
    replicas = ReplicaMetrics(registry)

    def open_shard(shard: int) -> ReplicatedSearcher:
        return ReplicatedSearcher(
            shard,
            nodes.searcher,
            settings.replica_policies,
            time.monotonic,
            random.Random(),
            replicas,
        )

    def serve_cluster(cluster: Cluster) -> None:
        _log.info("index found", shards=len(cluster.infos))
        core.serve(
            Answerer(
                encoder,
                cluster,
                manifest.score.no_answer_below,
                manifest.stopping_rule,
                Limits(
                    settings.merge_reserve,
                    settings.retrieve_share,
                    settings.candidates,
                    settings.read_ahead,
                ),
                metrics,
            )
        )

    encoding = Encoding(manifest.fingerprint, manifest.encoder.dimension)
    formation = Formation(encoding, open_shard, serve_cluster, ClusterMetrics(registry))
    nodes = Discovery(
        [resolver(target) for target in settings.shards],
        _open_node,
        lambda: formation.update(nodes.present(), nodes.nodes.values()),
        settings.discovery,
        random.Random(),
    )

    async def prepare() -> None:
        await encoder.warm_up()
        await formation.ready(settings.form_timeout)

    serving = serve(
        server,
        settings.listen,
        prepare,
        linger=settings.drain_linger,
        grace=settings.drain_grace,
    )
    try:
        await supervised(serving, nodes.run())
    finally:
        encoder.close()


def _open_node(address: str) -> Node:
    channel = open_channel(address)
    remote = RemoteSearcher(channel, address)
    return Node(
        address,
        remote,
        channel.close,  # a node is dropped once it has no call in hand
        reads=lambda: remote.reads,
        busy=lambda: remote.calls > 0,
    )


def _encoder(bundle: Bundle, settings: FrontSettings, metrics: FrontMetrics) -> QuestionEncoder:
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special, settings.inference)
    local = LocalTextEncoder(model, settings.encoder_threads)
    cached = CachedTextEncoder(local, settings.cache_entries, metrics.looked_up)
    return QuestionEncoder(bundle, tokenizer, cached)
