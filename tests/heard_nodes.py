"""Nodes as a front discovers them, with a manual clock."""

import random
from collections.abc import Mapping
from typing import Any

from fakes import FINGERPRINT, FakeSearcher, OneShardNode, reading, shard_info
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.domain.shard import NodeReport
from winnow.errors import WinnowError
from winnow.replicas.routing import ReplicaPolicies
from winnow.stateless.cluster.builder import ClusterBuilder
from winnow.stateless.cluster.discovery import Discovery
from winnow.stateless.cluster.membership import FrontEncoding
from winnow.stateless.cluster.node import Node, ReplicaAt
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.stateless.cluster.snapshot import ClusterSnapshot
from winnow.stateless.metrics import ClusterMetrics, ReplicaMetrics
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.node_calls import NodeCalls
from winnow.stateless.replicas.replicated import ReplicatedSearcher

LATELY = 1.0


async def closed() -> None:
    pass


class Nodes:
    """Discovered nodes of an index of two shards."""

    def __init__(self) -> None:
        self.clock, registry = ManualClock(), CollectorRegistry()
        metrics = ReplicaMetrics(registry)
        self.found = Discovery(
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
                lambda address: self.found.searcher(ReplicaAt(address, shard)),
                ReplicaPolicies(),
                clock=self.clock,
                rng=random.Random(1),
                metrics=metrics,
            ),
            lambda _: None,
            metrics=ClusterMetrics(registry),
            open_joint=self._open_joint,
        )
        self.snapshot = ClusterSnapshot(self.builder, self.found, LATELY)

    def hear(self, address: str, shard: int, index: str = "index", **said: Any) -> None:
        fields = {"index_id": index, "index_passages": 20, "generation": "rows", **said}
        info = shard_info(shard, **fields)
        self.hear_report(address, NodeReport((info,)))

    def hear_report(self, address: str, report: NodeReport) -> None:
        """Records the reply of a node to a poll."""
        self._node(address).record_reply(report, self.clock())
        self._update()

    def miss(self, address: str, error: WinnowError) -> None:
        """Fails as many polls of a node as remove it from the cluster."""
        for _ in range(DiscoverySettings().max_misses):
            self._node(address).record_failure(error)
        self._update()

    def _node(self, address: str) -> Node:
        return self.found.nodes.setdefault(address, self._open(address))

    def _update(self) -> None:
        self.builder.update(self.found.present_replicas(), self.found.nodes.values())

    def _open_joint(self, shards: Mapping[int, ReplicatedSearcher]) -> JointCalls:
        policies = ReplicaPolicies()
        calls = NodeCalls(policies.replicas.half_life, self.clock, random.Random(1))
        return JointCalls(
            shards, self.found.content_node, calls, policies=policies, clock=self.clock
        )

    def _open(self, address: str) -> Node:
        return Node(address, OneShardNode(FakeSearcher([reading(address)])), closed)
