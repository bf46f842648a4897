"""Times of a node's clock that are not after a deadline of the front."""

from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.stateless.cluster.node_clock import NodeClock


def test_a_deadline_is_a_time_of_the_node_by_its_last_reply() -> None:
    clock = ManualClock()
    node = NodeClock(clock)
    node.record(500_000)
    clock.advance(7)
    assert node.milliseconds_at(Deadline.after(2.5, clock)) == 509_500


def test_an_expiry_is_rounded_to_the_safe_side() -> None:
    clock = ManualClock()
    node = NodeClock(clock)
    node.record(1_000)
    assert node.milliseconds_at(Deadline.after(0.0009, clock)) == 1_000


def test_a_node_that_tells_no_time_gets_no_expiry() -> None:
    """Nodes of older versions send 0."""
    clock = ManualClock()
    node = NodeClock(clock)
    assert node.milliseconds_at(Deadline.after(1, clock)) is None
    node.record(1_000)
    node.record(0)
    assert node.milliseconds_at(Deadline.after(1, clock)) is None
