"""Puts a front node together and runs it."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from stateless.answer.admission import Admission
from stateless.answer.answering import Answerer
from stateless.answer.calls import Limits
from stateless.answer.core import AnswerCore
from stateless.answer.remembered import RememberedAnswers
from stateless.answer.servicer import SERVICE, AnswerServicer
from stateless.answer.validation import Defaults
from stateless.cluster.cluster import Cluster
from stateless.cluster.discovery import Discovery
from stateless.cluster.edition import Edition, edition_of
from stateless.cluster.formation import Formation
from stateless.cluster.membership import Encoding
from stateless.cluster.node import Node
from stateless.doors import Doors
from stateless.encoding import QuestionEncoder
from stateless.heads.admission import TextAdmission
from stateless.heads.core import PredictCore
from stateless.heads.metrics import HeadMetrics
from stateless.heads.predictor import Predictor
from stateless.heads.questions import QuestionHeads
from stateless.heads.ring import Memory, Ring
from stateless.heads.rings import Rings
from stateless.heads.servicer import ARRIVING, LARGEST, HeadServicer
from stateless.heads.servicer import SERVICE as HEAD_SERVICE
from stateless.metrics import AdmissionMetrics, ClusterMetrics, FrontMetrics, ReplicaMetrics
from stateless.policy.capacity import seconds_per_read
from stateless.replicas.remote import RemoteSearcher
from stateless.replicas.replicated import ReplicatedSearcher
from stateless.settings import FrontSettings
from stateless.supervision import supervised
from winnow.bundle import Bundle, load_bundle
from winnow.domain.encoder import StatesFormat
from winnow.domain.predicted import HeadInMemory
from winnow.heads.finding import follow, placed_heads
from winnow.heads.metrics import WarmHeadMetrics
from winnow.heads.placed import PlacedHeads
from winnow.heads.store import open_store
from winnow.heads.warm import WarmHeads
from winnow.inference.encoder import open_question_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import LocalTextEncoder
from winnow.policy.kept import MIB, Watch
from winnow.policy.load import Load
from winnow.resolving import resolver
from winnow.rpc.boundary import Boundary
from winnow.rpc.channel import open_balanced, open_channel
from winnow.rpc.server import Server
from winnow.rpc.service import serve, serve_metrics
from winnow.settings.common import LogFormat
from winnow.signals import ignore_signals
from winnow.telemetry.caches import CacheMetrics
from winnow.telemetry.logs import logging_to_stderr
from winnow.telemetry.metrics import BundleMetrics, LogMetrics, RpcMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoder
from winnow.text.remote import SERVICE as ENCODER_SERVICE
from winnow.text.remote import RemoteTextEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2_grpc, head_pb2_grpc

_log = structlog.get_logger("stateless")
Prepare = Callable[[], Awaitable[None]]
Serving = Coroutine[Any, Any, None]
_SPECIAL = 2
"""Tokens that frame a text."""
_LATELY = 2.5
"""Times the pause between two looks at a node for which it is believed to be unchanged."""
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
    doors = Doors()
    server = _server(settings, registry, doors)
    serve_metrics(settings.metrics_listen, registry)
    async with contextlib.AsyncExitStack() as stack:
        encodings = CacheMetrics(registry, "winnow_front_encoding_cache", "encoded texts")
        shared = await _encoder(bundle, settings, encodings, stack, settings.encoder_address)
        rings, looking = await _rings(bundle, shared, settings, encodings, registry, stack)
        predictor = _serve_heads(server, rings, settings, registry)
        questions = QuestionEncoder(bundle, shared.tokenizer, shared.encoder)

        async def prepare() -> None:
            await questions.warm_up()
            for ring in rings.all():
                await ring.warm_up()

        def serving(prepare: Prepare) -> Serving:
            served = _serving(server, settings, prepare)
            return supervised(served, looking(), "head servers") if looking else served

        if settings.shards:
            heads = QuestionHeads(predictor, rings.default, questions) if rings.all() else None
            await _answer(
                server,
                doors,
                bundle,
                questions,
                heads,
                prepare,
                serving,
                metrics,
                settings,
                registry,
            )
        else:
            await serving(prepare)


def _server(settings: FrontSettings, registry: CollectorRegistry, doors: Doors) -> Server:
    services = [SERVICE] if settings.shards else []
    streams = max(_LEAST_STREAMS, 2 * settings.max_in_flight)
    made = partial(Server, boundary=Boundary(RpcMetrics(registry)), door=doors, streams=streams)
    if not settings.serves_heads:
        return made(services)
    return made([*services, HEAD_SERVICE], largest=LARGEST, arriving=ARRIVING)


def _serving(server: Server, settings: FrontSettings, prepare: Prepare) -> Serving:
    return serve(
        server,
        settings.listen,
        prepare,
        linger=settings.drain_linger,
        grace=settings.drain_grace,
    )


async def _answer(
    server: Server,
    doors: Doors,
    bundle: Bundle,
    encoder: QuestionEncoder,
    heads: QuestionHeads | None,
    warm_up: Prepare,
    serving: Callable[[Prepare], Serving],
    metrics: FrontMetrics,
    settings: FrontSettings,
    registry: CollectorRegistry,
) -> None:
    """Serves with the answer service, beside what the server has already."""
    manifest = bundle.manifest
    defaults = Defaults(
        settings.passages_to_read,
        settings.answers,
        settings.read_scope,
        manifest.reader.max_answer_tokens,
        settings.max_loss,
        settings.retriever,
        partial_results=settings.partial_results,
        patience=settings.patience,
        serves_heads=heads is not None,
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
    doors.add(SERVICE, admission.refusal)

    def edition() -> Edition:
        if (infos := formation.view.expected()) is None:
            return Edition(None)
        replicas = formation.view.replicas
        silences = {shard: map(nodes.silence, own) for shard, own in replicas.items()}
        return edition_of(infos, silences, _LATELY * settings.poll_every)

    answers = CacheMetrics(registry, "winnow_front_answer_cache", "answers")
    budget = settings.answer_cache_mb * MIB
    remembered = RememberedAnswers(budget, edition, answers) if budget else None
    core = AnswerCore(defaults, admission, metrics, asked, remembered, heads)
    servicer = AnswerServicer(core, settings.default_deadline)
    answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server.grpc)
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
                    settings.word_candidates,
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
        await warm_up()
        await formation.ready(settings.form_timeout)

    await supervised(serving(prepare), nodes.run())


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


@dataclass(frozen=True, slots=True)
class _Shared:
    """An encoder, shared by questions and heads."""

    tokenizer: Tokenizer
    encoder: TextEncoder
    width: int | None
    """Of the states of tokens; 0 if it gives none, None if it may not be there yet to tell."""


async def _encoder(
    bundle: Bundle,
    settings: FrontSettings,
    watch: Watch,
    stack: contextlib.AsyncExitStack,
    address: str = "",
) -> _Shared:
    """The encoder of a bundle, in this process or at an address; the stack closes it."""
    tokenizer = Tokenizer(bundle.tokenizer)
    encoder: TextEncoder
    width: int | None = None
    if address:
        encoder = _remote(bundle, settings, stack, address)
    else:
        model = open_question_encoder(
            bundle, tokenizer.special, settings.inference, settings.serves_heads
        )
        _, states = model.with_states([])
        width = 0 if states is None else states.shape[1]
        encoder = LocalTextEncoder(model, settings.encoder_threads)
    cached = CachedTextEncoder(encoder, settings.cache_mb * MIB, watch)
    stack.callback(cached.close)
    return _Shared(tokenizer, cached, width)


def _remote(
    bundle: Bundle, settings: FrontSettings, stack: contextlib.AsyncExitStack, address: str
) -> TextEncoder:
    """An encoder at an address, where it need not be yet."""
    channel = open_balanced(address, ENCODER_SERVICE)
    stack.push_async_callback(channel.close)
    wanted = StatesFormat.FLOAT16 if settings.serves_heads else StatesFormat.NONE
    fingerprint = bundle.manifest.states_fingerprint
    return RemoteTextEncoder(channel, address, fingerprint, wanted)


async def _rings(
    bundle: Bundle,
    shared: _Shared,
    settings: FrontSettings,
    encodings: Watch,
    registry: CollectorRegistry,
    stack: contextlib.AsyncExitStack,
) -> tuple[Rings, Callable[[], Serving] | None]:
    """The default ring, on the encoder of questions, and those with encoders of their own.

    With head servers there is something to run beside serving: it looks where they are.
    """
    if not settings.serves_heads:
        return Rings(), None
    placed: list[PlacedHeads] = []
    warm = None if settings.head_servers else _warm(settings, registry, stack)

    def ring(name: str, bundle: Bundle, own: _Shared, store: str) -> Ring:
        entry, fingerprint = bundle.manifest.encoder, bundle.manifest.states_fingerprint
        most = entry.max_passage_tokens - _SPECIAL
        if warm is None:
            remote = placed_heads(fingerprint)
            stack.push_async_callback(remote.close)
            placed.append(remote)
            return Ring(name, fingerprint, own.tokenizer, own.encoder, most, remote)
        heads = warm(name, fingerprint, own.width, store)
        stack.callback(heads.close)
        memory = partial(_memory, heads)
        return Ring(name, fingerprint, own.tokenizer, own.encoder, most, heads, memory)

    rings = [ring(bundle.manifest.name, bundle, shared, settings.heads)]
    for further in settings.further_rings:
        other = await asyncio.to_thread(load_bundle, further.bundle)
        own = await _encoder(other, settings, encodings, stack)
        rings.append(ring(further.name, other, own, further.store))

    def update(addresses: Collection[str]) -> None:
        for heads in placed:
            heads.update(addresses)

    resolvers = [resolver(target) for target in settings.head_servers]
    looking = partial(follow, resolvers, update, settings.resolve_every)
    return Rings(rings), looking if placed else None


def _warm(
    settings: FrontSettings, registry: CollectorRegistry, stack: contextlib.AsyncExitStack
) -> Callable[[str, str, int | None, str], WarmHeads]:
    """What makes the heads of a ring in this process; all rings share its threads."""
    threads = FairThreads(settings.head_threads, "heads")
    stack.callback(threads.close)
    metrics, budget = WarmHeadMetrics(registry), settings.heads_budget_mb * 1_000_000

    def heads(name: str, fingerprint: str, width: int | None, store: str) -> WarmHeads:
        own = metrics.ring(name)
        return WarmHeads(open_store(store), fingerprint, width, budget, threads, own)

    return heads


def _memory(heads: WarmHeads) -> Memory:
    warm = [HeadInMemory(each.id, each.version, each.bytes, each.pinned) for each in heads.warm()]
    return Memory(heads.budget_bytes, tuple(warm))


def _serve_heads(
    server: Server, rings: Rings, settings: FrontSettings, registry: CollectorRegistry
) -> Predictor:
    """Has the server predict, or say that it does not."""
    metrics = HeadMetrics(registry)
    predictor = Predictor(rings, metrics)
    admission = TextAdmission(settings.max_predictions, metrics)
    core = PredictCore(rings, predictor, admission, metrics)
    servicer = HeadServicer(core, settings.default_deadline)
    head_pb2_grpc.add_HeadServiceServicer_to_server(servicer, server.grpc)
    return predictor
