"""A front over shards that take writes."""

import random
from functools import cache
from typing import Any

from fakes import FINGERPRINT, FakeTextEncoder, OneShardNode
from logged_shards import LiveReplica
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.bundle import Bundle, load_bundle
from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.question import AnswerRequest, ReadScope, Retriever
from winnow.domain.shard import NodeReport
from winnow.domain.threshold import AnswerThreshold
from winnow.domain.write import Position
from winnow.errors import UnavailableError
from winnow.packaged import default_bundle
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.shard_writer import WordSource
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import Node, ReplicaAt
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.cluster.snapshot import ClusterSnapshot
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.metrics import AdmissionMetrics, ClusterMetrics, FrontMetrics, ReplicaMetrics
from winnow.stateless.replicas.replicated import ReplicatedSearcher
from winnow.stateless.words.served import ServedWords
from winnow.text.tokenizer import Tokenizer

LATELY = 1.0
QUIET = HedgeSettings(min_samples=10**6)
"""Settings under which no call is hedged."""


@cache
def _bundle() -> Bundle:
    return load_bundle(default_bundle())


async def _closed() -> None:
    pass


async def _at_once() -> None:
    pass


class LiveFront:
    """The real parts of a front over fake replicas; a test polls nodes by `look`."""

    def __init__(self, *replicas: LiveReplica, hedge: HedgeSettings = QUIET) -> None:
        self.clock, self.registry = ManualClock(), CollectorRegistry()
        self.replicas = {each.name: each for each in replicas}
        metrics = ReplicaMetrics(self.registry)
        self.nodes = Discovery(
            [],
            self._open,
            lambda: None,
            settings=DiscoverySettings(),
            rng=random.Random(1),
            clock=self.clock,
        )
        self.builder = ClusterBuilder(
            FrontEncoding(FINGERPRINT, 2, "bundle"),
            lambda shard: ReplicatedSearcher(
                shard,
                lambda address: self.nodes.searcher(ReplicaAt(address, shard)),
                ReplicaPolicies(hedge=hedge),
                clock=self.clock,
                rng=random.Random(1),
                metrics=metrics,
            ),
            self._serve,
            metrics=ClusterMetrics(self.registry),
            clock=self.clock,
        )
        self.words = ServedWords(self._counting, _at_once)
        self.snapshot = ClusterSnapshot(self.builder, self.nodes, LATELY, lambda: self.words.name)
        load = ReadLoad(LoadSettings(max_reads=1000, reserved_share=0.0), self.clock, lambda: None)
        self.core = AnswerCore(
            QuestionDefaults(
                passages_to_read=3,
                answers=3,
                read_scope=ReadScope.GLOBAL,
                max_answer_tokens=10,
                retriever=Retriever.DENSE,
            ),
            Admission(load, 64, AdmissionMetrics(self.registry)),
            FrontMetrics(self.registry),
            cache=AnswerCache(1 << 20, self.snapshot.index_version),
        )
        for name in self.replicas:
            self.nodes.nodes[name] = self._open(name)
        self.look()

    def look(self, *names: str) -> None:
        """Polls the named nodes, or all of them."""
        for name in names or self.replicas:
            replica, node = self.replicas[name], self.nodes.nodes[name]
            if replica.fails is None:
                node.record_reply(NodeReport((replica.said,)), self.clock())
            else:
                node.record_failure(replica.fails)
        self.builder.update(self.nodes.present_replicas(), self.nodes.nodes.values())

    def restart(self, replica: LiveReplica) -> None:
        """Starts another replica at the address of a replica of the same name, and polls it."""
        self.replicas[replica.name] = replica
        self.nodes.nodes[replica.name] = self._open(replica.name)
        self.look(replica.name)

    def kill(self, name: str) -> None:
        """Stops a replica; the front learns of it only by the next poll or call."""
        self.replicas[name].fails = UnavailableError(f"{name}: connection refused")

    @property
    def cluster(self) -> Cluster:
        assert self.builder.cluster is not None
        return self.builder.cluster

    @property
    def statistics(self) -> object:
        """Name of the word statistics; equal names mean equal counts."""
        return self.words.name

    async def count(self) -> None:
        """Refreshes the counts of changed words."""
        assert self.words._statistics is not None
        await self.words._statistics.refresh()

    async def ask(
        self, text: str = "Who?", *after: Position, left: float = 60.0, **options: Any
    ) -> Answered:
        """Asks once."""
        request = AnswerRequest(question=text, after=after, **options)
        return await self.core.answer(request, Deadline.after(left))

    def _counting(self, shard: int) -> list[WordSource]:
        return self.snapshot.word_sources(shard)

    def _serve(self, cluster: Cluster) -> None:
        bundle = _bundle()
        encoder = QuestionEncoder(bundle, Tokenizer(bundle.tokenizer), FakeTextEncoder())
        weigh = self.words.statistics_of(cluster).weigh
        metrics = FrontMetrics(CollectorRegistry())
        limits = SearchLimits(merge_reserve=0.02, retrieve_share=0.4)
        self.core.set_answerer(
            Answerer(
                encoder,
                cluster,
                calibration_for=lambda _: AnswerCalibration(threshold=AnswerThreshold(-9.0)),
                rule_for=lambda *_: None,
                limits=limits,
                metrics=metrics,
                weigh=weigh,
            )
        )

    def _open(self, name: str) -> Node:
        replica = self.replicas[name]
        return Node(name, OneShardNode(replica), _closed, words=lambda _: replica)
