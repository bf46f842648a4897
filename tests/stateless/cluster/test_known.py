"""What is known of a cluster, by what its nodes said last."""

import pytest
from heard_nodes import LATELY, Nodes

from stateless.cluster.edition import Edition


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
