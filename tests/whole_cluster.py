"""A cluster in one process: gRPC servers on free ports, and the real models."""

import asyncio
import contextlib
import functools
import random
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes import OneShardNode
from prometheus_client import CollectorRegistry
from tenacious import LONG, Change

from winnow.bundle import Bundle, load_bundle
from winnow.client.messages import AnswerClient
from winnow.content_node.admission import AdmittedSearcher, NodeLoad
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import open_shard, view_of
from winnow.domain.question import ReadScope
from winnow.heads.admission import TextAdmission
from winnow.heads.local import LocalHeads
from winnow.heads.metrics import HeadCacheMetrics
from winnow.heads.store import open_store
from winnow.index_directory import shard_directories
from winnow.inference.encoder import Encoder, open_question_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import LocalTextEncoder
from winnow.policy.byte_bounded_lru import MIB
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import ReaderPool
from winnow.reading.reader import Reader
from winnow.replicas.routing import ReplicaPolicies
from winnow.resolving import StaticTarget
from winnow.rpc.channel import open_channel
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.shard_service.servicer import SERVICE as SHARD_SERVICE
from winnow.shard_service.servicer import ShardServicer
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.servicer import SERVICE, AnswerServicer
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import Node as Known
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.cluster.snapshot import ClusterSnapshot as ClusterKnown
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.heads import questions
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.heads.servicer import HeadServicer
from winnow.stateless.metrics import AdmissionMetrics, ClusterMetrics, FrontMetrics, ReplicaMetrics
from winnow.stateless.replicas.remote import RemoteNode
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.telemetry.metrics import CacheMetrics, RpcMetrics
from winnow.telemetry.tracing.tracer import NO_TRACER, Tracer
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoder
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import head_pb2_grpc, shard_pb2_grpc

OFTEN = DiscoverySettings(poll_every=0.05, poll_timeout=LONG)


@dataclass
class Node:
    server: Server
    searcher: LocalSearcher
    registry: CollectorRegistry
    address: str


@dataclass
class Running:
    client: AnswerClient
    nodes: list[Node]
    registry: CollectorRegistry
    """Metrics of the front node."""
    change: Change
    """Told after each change of the nodes that the front knows."""


@contextlib.asynccontextmanager
async def running(
    index: Path,
    bundle: Bundle,
    exact: bool = True,
    replicas: int = 1,
    heads: Path | None = None,
    word_candidates: int = 0,
    tracer: Tracer = NO_TRACER,
    policies: ReplicaPolicies | None = None,
    looks: DiscoverySettings = OFTEN,
) -> AsyncIterator[Running]:
    """Serves an index, and the heads of a store; every node has two threads."""
    async with contextlib.AsyncExitStack() as stack:
        nodes = [
            await _node(path, bundle, exact, tracer, stack)
            for path in shard_directories(index)
            for _ in range(replicas)
        ]
        registry, change = CollectorRegistry(), Change()
        address = await _front(
            nodes,
            bundle,
            registry,
            change,
            stack,
            heads,
            word_candidates,
            tracer,
            policies or ReplicaPolicies(),
            looks,
        )
        client = await stack.enter_async_context(AnswerClient(address))
        yield Running(client, nodes, registry, change)


# models keep no state between questions, so all clusters of a test run share them


@functools.cache
def _tokenizer(bundle: Path) -> Tokenizer:
    return Tokenizer(load_bundle(bundle).tokenizer)


@functools.cache
def _reader(bundle: Path) -> Reader:
    return open_reader(load_bundle(bundle), _tokenizer(bundle).special)


@functools.cache
def _encoder(bundle: Path, states: bool) -> Encoder:
    return open_question_encoder(load_bundle(bundle), _tokenizer(bundle).special, states=states)


async def _node(
    path: Path, bundle: Bundle, exact: bool, tracer: Tracer, stack: contextlib.AsyncExitStack
) -> Node:
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry)
    pool = ReaderPool(2, 2, metrics)
    stack.callback(pool.close)
    reader = _reader(bundle.directory)
    pace = Pace(2.0, time.monotonic)
    view = view_of(open_shard(path, 128, exact))
    searcher = LocalSearcher(view, reader, bundle, pool, pace=pace, metrics=metrics)
    load = NodeLoad(1_000, pace=pace, clock=time.monotonic, metrics=metrics)
    servicer = ShardServicer(OneShardNode(AdmittedSearcher(searcher, load)), 2.0)
    server = Server(
        services=[SHARD_SERVICE],
        interceptor=CallInterceptor(RpcMetrics(registry), quiet=True, tracer=tracer),
    )
    shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, server.grpc)
    port = await server.start("127.0.0.1:0")
    await server.set_serving(True)
    stack.push_async_callback(server.drain, 0)
    return Node(server, searcher, registry, f"127.0.0.1:{port}")


async def _front(
    nodes: list[Node],
    bundle: Bundle,
    registry: CollectorRegistry,
    change: Change,
    stack: contextlib.AsyncExitStack,
    store: Path | None,
    word_candidates: int,
    tracer: Tracer,
    policies: ReplicaPolicies,
    looks: DiscoverySettings,
) -> str:
    metrics = FrontMetrics(registry)
    tokenizer = _tokenizer(bundle.directory)
    model = _encoder(bundle.directory, store is not None)
    encodings = CacheMetrics(registry, "winnow_front_encoding_cache", "encoded texts")
    text_encoder = CachedTextEncoder(LocalTextEncoder(model, 2), MIB, encodings)
    encoder = QuestionEncoder(bundle, tokenizer, text_encoder)
    stack.callback(encoder.close)
    stack.enter_context(_patient_heads())
    groups = [warm_group(bundle, tokenizer, text_encoder, store, stack)] if store else []
    head_metrics = HeadMetrics(registry)
    predictor = Predictor(EncoderGroups(groups), head_metrics)
    of_questions = QuestionHeads(predictor, groups[0], encoder) if groups else None
    manifest = bundle.manifest
    load = ReadLoad(LoadSettings(), time.monotonic, lambda: None)
    admission = Admission(load, 64, AdmissionMetrics(registry))
    longest = manifest.reader.max_answer_tokens
    defaults = QuestionDefaults(
        passages_to_read=10,
        answers=3,
        read_scope=ReadScope.GLOBAL,
        max_answer_tokens=longest,
        serves_heads=bool(groups),
    )

    def index_version() -> IndexVersion:
        # a busy machine may delay polls by seconds
        return ClusterKnown(builder, known, LONG).index_version()

    watch = CacheMetrics(registry, "winnow_front_answer_cache", "answers")
    remembered = AnswerCache(MIB, index_version, watch)
    core = AnswerCore(defaults, admission, metrics, cache=remembered, heads=of_questions)
    replicas = ReplicaMetrics(registry)

    def serve(cluster: Cluster) -> None:
        rule = manifest.stopping_rule
        limits = SearchLimits(
            merge_reserve=0.02,
            retrieve_share=0.4,
            candidates=7,
            read_ahead=4,
            word_candidates=word_candidates,
        )
        core.set_answerer(
            Answerer(
                encoder,
                cluster,
                calibration_for=manifest.answer_calibration,
                rule_for=rule,
                limits=limits,
                metrics=metrics,
            )
        )

    def update() -> None:
        builder.update(known.present_replicas(), known.nodes.values())
        change.tell()

    builder = ClusterBuilder(
        FrontEncoding(manifest.fingerprint, manifest.encoder.dimension, manifest.name),
        lambda shard: ReplicatedSearcher(
            shard,
            lambda address: known.searcher(ReplicaAt(address, shard)),
            policies,
            clock=time.monotonic,
            rng=random.Random(1),
            metrics=replicas,
        ),
        serve,
        metrics=ClusterMetrics(registry),
    )
    known = Discovery(
        [StaticTarget(node.address) for node in nodes],
        _known,
        update,
        settings=looks,
        rng=random.Random(1),
    )
    looking = asyncio.create_task(known.run())
    stack.push_async_callback(asyncio.wait, [looking])
    stack.callback(looking.cancel)
    await asyncio.wait_for(builder.wait_until_serving(LONG), LONG)
    server = Server(
        services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(registry), tracer=tracer)
    )
    AnswerServicer(core, LONG).add_to(server.grpc)
    admitted = TextAdmission(64, head_metrics)
    predicting = PredictCore(EncoderGroups(groups), predictor, admitted, head_metrics)
    head_pb2_grpc.add_HeadServiceServicer_to_server(HeadServicer(predicting, LONG), server.grpc)
    port = await server.start("127.0.0.1:0")
    await server.set_serving(True)
    stack.push_async_callback(server.drain, 0)
    return f"127.0.0.1:{port}"


@contextlib.contextmanager
def _patient_heads() -> Iterator[None]:
    """Gives heads of questions more than the second that they get of a real front."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "_MAX_SECONDS", LONG)
        yield


def warm_group(
    bundle: Bundle,
    tokenizer: Tokenizer,
    encoder: TextEncoder,
    store: Path,
    stack: contextlib.AsyncExitStack,
) -> EncoderGroup:
    """Returns an encoder group with the heads of a store; `encoder` returns token states."""
    threads = FairThreads(2, "heads")
    stack.callback(threads.close)
    fingerprint, width = bundle.manifest.states_fingerprint, bundle.manifest.encoder.dimension
    metrics = HeadCacheMetrics(CollectorRegistry()).group("default")
    heads = LocalHeads(
        open_store(store),
        fingerprint=fingerprint,
        width=width,
        budget_bytes=1 << 28,
        threads=threads,
        metrics=metrics,
    )
    stack.callback(heads.close)
    most = bundle.manifest.encoder.max_passage_tokens - 2
    return EncoderGroup(
        "default", fingerprint, tokenizer=tokenizer, encoder=encoder, max_tokens=most, heads=heads
    )


def _known(address: str) -> Known:
    channel = open_channel(address)
    remote = RemoteNode(channel, address)
    return Known(address, remote, channel.close, busy=lambda: remote.calls > 0)
