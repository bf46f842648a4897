"""What is known of a cluster, by what its nodes said last."""

import pytest
from heard_nodes import LATELY, Nodes

from winnow.stateless.cluster.index_version import IndexVersion


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
    assert known.edition() == IndexVersion(None)


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


def test_the_edition_is_made_once_until_something_changes(nodes: Nodes) -> None:
    """At a thousand shards it takes milliseconds, and every question asks for it."""
    known = nodes.known
    made = known.edition()
    nodes.clock.advance(LATELY / 2)
    assert known.edition() is made
    known.notice(1, 5)
    noticed = known.edition()
    assert (noticed.name == made.name, noticed.sequences) == (False, {0: 0, 1: 5})
    assert known.edition() is noticed
    nodes.hear("a", 0)
    assert known.edition() == noticed, "nothing new was said"


def test_a_silence_ends_the_belief_in_an_edition_and_the_next_look_renews_it(nodes: Nodes) -> None:
    known = nodes.known
    assert known.edition().sure
    nodes.clock.advance(LATELY * 1.1)
    assert not known.edition().sure
    nodes.hear("a", 0)
    nodes.hear("b", 1)
    nodes.clock.advance(LATELY * 0.1)
    assert known.edition().sure
