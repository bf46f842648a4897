"""What is known of a cluster, by what its nodes said last."""

import random
from typing import Any

import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from stateless.cluster.discovery import Discovery, DiscoverySettings
from stateless.cluster.edition import Edition
from stateless.cluster.formation import Formation
from stateless.cluster.known import Known
from stateless.cluster.membership import Encoding
from stateless.cluster.node import Node
from stateless.metrics import ClusterMetrics, ReplicaMetrics
from stateless.replicas.replicated import ReplicaPolicies, ReplicatedSearcher
from winnow.domain.shard import ShardInfo
from winnow.fakes import FINGERPRINT, FakeSearcher, reading

LATELY = 1.0


async def closed() -> None:
    pass


class Nodes:
    """Nodes that said what they are."""

    def __init__(self) -> None:
        self.clock, registry = ManualClock(), CollectorRegistry()
        metrics = ReplicaMetrics(registry)
        self.found = Discovery(
            [], self._open, lambda: None, DiscoverySettings(), random.Random(1), self.clock
        )
        self.formation = Formation(
            Encoding(FINGERPRINT, 2),
            lambda shard: ReplicatedSearcher(
                shard,
                self.found.searcher,
                ReplicaPolicies(),
                self.clock,
                random.Random(1),
                metrics,
            ),
            lambda _: None,
            ClusterMetrics(registry),
        )
        self.known = Known(self.formation, self.found, LATELY)

    def hear(self, address: str, shard: int, **said: Any) -> None:
        node = self.found.nodes.setdefault(address, self._open(address))
        info = ShardInfo(shard, 2, "index", 10, 2, "fake", FINGERPRINT, "rows", 20, **said)
        node.heard(info, self.clock())
        self.formation.update(self.found.present(), self.found.nodes.values())

    def _open(self, address: str) -> Node:
        return Node(address, FakeSearcher([reading(address)]), closed)


@pytest.fixture
def nodes() -> Nodes:
    made = Nodes()
    made.hear("a", 0, seconds_per_read=0.01, reads_in_hand=3)
    made.hear("b", 1, seconds_per_read=0.02, reads_in_hand=4)
    return made


def test_nothing_is_known_of_no_nodes() -> None:
    known = Nodes().known
    assert known.seconds_per_read() is None
    assert known.others_reads() == 0
    assert known.edition() == Edition(None)


def test_the_slowest_shard_sets_the_pace(nodes: Nodes) -> None:
    assert nodes.known.seconds_per_read() == pytest.approx(0.01)  # two shards share the passages


def test_what_nodes_have_in_hand_for_others_is_added_up(nodes: Nodes) -> None:
    assert nodes.known.others_reads() == 7


def test_the_edition_is_sure_until_a_shard_is_silent(nodes: Nodes) -> None:
    assert nodes.known.edition().sure
    nodes.clock.advance(LATELY / 2)
    nodes.hear("a", 0)
    nodes.clock.advance(LATELY * 0.6)
    assert not nodes.known.edition().sure


def test_a_node_that_is_gone_is_nothing_that_is_sure(nodes: Nodes) -> None:
    del nodes.found.nodes["a"]
    assert not nodes.known.edition().sure
    assert nodes.known.others_reads() == 4
