"""Composes the fronts and content nodes of a simulated cluster whose work takes time."""

import asyncio
from collections.abc import Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from simulation.channel import SimulatedServer
from simulation.front import shared_parts
from simulation.models import DIMENSION, tokenizer_of, vector_of
from simulation.node import no_runtimes
from simulation.tails.costs import Costs
from simulation.tails.loop import TimedLoop
from simulation.tails.searcher import TimedSearcher
from winnow.bundle import Bundle
from winnow.content_node.admission import AdmittedSearcher
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.domain.shard import ShardInfo
from winnow.inference.fair_threads import FairThreads
from winnow.rpc.interceptor import CallInterceptor
from winnow.shard_service.servicer import ShardServicer
from winnow.stateless.answer.servicer import AnswerServicer
from winnow.stateless.composing.answers import ConversionThreads, open_index
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.composing.nodes import RemoteNodes
from winnow.stateless.composing.shard_services import open_served_cluster
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.encoder import OnEncoded, TextEncoding
from winnow.v1 import shard_pb2_grpc

_INDEX = "simulated-index"


class TimedTextEncoder:
    """A `TextEncoder` whose threads take time."""

    def __init__(self, bundle: Bundle, threads: int, costs: Costs) -> None:
        self._threads, self._costs = FairThreads(threads, "encoder"), costs
        self._version = bundle.manifest.version

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes a text by its words."""

        def work() -> TextEncoding:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, TimedLoop)
            loop.charge(native=self._costs.encode())
            return TextEncoding(vector_of(ids, self._version))

        return await self._threads.run(client, work)

    async def warm_up(self, max_tokens: int) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def open_timed_node(
    bundle: Bundle, own: Sequence[int], shards: int, threads: int, costs: Costs, passages: int
) -> SimulatedServer:
    """Composes a content node of some shards; returns its server.

    `shards` is the number of shards of the index, and `passages` the number of each.
    """
    registry = CollectorRegistry()
    settings = NodeSettings.model_validate(
        {"shard": [bundle.directory], "bundle": bundle.directory, "threads": threads}
        | {"reader_threads": threads}
    )
    parts = open_node_parts(settings, bundle, registry, no_runtimes(), len(own))
    parts.pace.assume(costs.units.read.ms / 1e3 / threads)
    served = ServedShards(joint=parts.joint)
    for number in own:
        shard = ServedShard(number)
        shard.index_id = _INDEX
        info = ShardInfo(
            shard=number,
            shards=shards,
            index_id=_INDEX,
            passages=passages,
            dimension=DIMENSION,
            bundle_name=bundle.manifest.name,
            bundle_fingerprint=bundle.manifest.fingerprint,
            generation=f"generation-{number}",
            index_passages=passages * shards,
        )
        shard.serve(AdmittedSearcher(TimedSearcher(info, parts, costs), parts.load))
        served.add(shard)
    server = SimulatedServer(CallInterceptor(RpcMetrics(registry), quiet=True))
    grpc: Any = server
    servicer = ShardServicer(served, settings.default_deadline)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, grpc)
    return server


def open_timed_front(
    bundle: Bundle,
    costs: Costs,
    *,
    shards: Sequence[str] = (),
    fronts: Sequence[str] = (),
    threads: int,
    is_middle: bool = False,
) -> tuple[Front, FrontPart]:
    """Composes a front over content nodes, or over middle fronts; returns its tasks, too.

    The services of the front are those of answers, or, of a middle front, those of its shards.
    """
    front = shared_parts(
        bundle,
        shards,
        fronts=list(fronts),
        cache_mb=0,
        answer_cache_mb=0,
        brown_out_floor=1,
    )
    settings = front.settings
    grpc: Any = front.services
    source = RemoteNodes(front)
    questions = QuestionEncoder(
        bundle, tokenizer_of(bundle.tokenizer), TimedTextEncoder(bundle, threads, costs)
    )
    index = open_index(front, source, questions, None, ConversionThreads.open(front))
    if is_middle:
        served = open_served_cluster(front, source, index.cluster, FeedMetrics(front.registry))
        servicer = ShardServicer(served, settings.default_deadline)
        shard_pb2_grpc.add_ShardServiceServicer_to_server(servicer, grpc)
    else:
        AnswerServicer(index.parts.answers, settings.default_deadline).add_to(grpc)
    return front, index.cluster.part
