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


def test_nothing_is_snapshot_of_no_nodes() -> None:
    snapshot = Nodes().snapshot
    assert snapshot.seconds_per_read() is None
    assert snapshot.others_reads() == 0
    assert snapshot.index_version() == IndexVersion(None)


def test_the_slowest_shard_sets_the_pace(nodes: Nodes) -> None:
    assert nodes.snapshot.seconds_per_read() == pytest.approx(0.01)  # two shards share the passages


def test_reads_in_hand_for_other_fronts_are_added_up(nodes: Nodes) -> None:
    assert nodes.snapshot.others_reads() == 7


def test_the_version_is_sure_until_a_shard_is_silent(nodes: Nodes) -> None:
    assert nodes.snapshot.index_version().is_confirmed
    nodes.clock.advance(LATELY / 2)
    nodes.hear("a", 0)
    nodes.clock.advance(LATELY * 0.6)
    assert not nodes.snapshot.index_version().is_confirmed


def test_a_node_that_is_gone_is_nothing_that_is_sure(nodes: Nodes) -> None:
    del nodes.found.nodes["a"]
    assert not nodes.snapshot.index_version().is_confirmed
    assert nodes.snapshot.others_reads() == 4


def test_the_version_is_made_once_until_something_changes(nodes: Nodes) -> None:
    """At a thousand shards it takes milliseconds, and every question asks for it."""
    snapshot = nodes.snapshot
    made = snapshot.index_version()
    nodes.clock.advance(LATELY / 2)
    assert snapshot.index_version() is made
    snapshot.record_write(1, 5)
    noticed = snapshot.index_version()
    assert (noticed.name == made.name, noticed.sequences) == (False, {0: 0, 1: 5})
    assert snapshot.index_version() is noticed
    nodes.hear("a", 0)
    assert snapshot.index_version() == noticed, "nothing new was said"


def test_a_silence_ends_the_belief_in_an_version_and_the_next_look_renews_it(nodes: Nodes) -> None:
    snapshot = nodes.snapshot
    assert snapshot.index_version().is_confirmed
    nodes.clock.advance(LATELY * 1.1)
    assert not snapshot.index_version().is_confirmed
    nodes.hear("a", 0)
    nodes.hear("b", 1)
    nodes.clock.advance(LATELY * 0.1)
    assert snapshot.index_version().is_confirmed
