"""How far a replica has got, now and a while ago."""

from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.stateless.policy.progress import SETTLED_SECONDS, ReplicaProgress


def test_at_first_nothing_is_known_to_be_there() -> None:
    progress = ReplicaProgress(ManualClock())
    assert (progress.sequence, progress.settled) == (0, 0)


def test_writes_of_a_while_ago_are_settled_and_later_ones_are_not() -> None:
    clock = ManualClock()
    progress = ReplicaProgress(clock)
    progress.record_poll(5)
    clock.advance(SETTLED_SECONDS / 2)
    progress.record_poll(7)
    assert (progress.sequence, progress.settled) == (7, 0)
    clock.advance(SETTLED_SECONDS / 2)
    assert (progress.sequence, progress.settled) == (7, 5)
    clock.advance(SETTLED_SECONDS / 2)
    assert progress.settled == 7


def test_a_late_answer_takes_nothing_back_and_a_restarted_node_does() -> None:
    progress = ReplicaProgress(ManualClock())
    progress.record_poll(5)
    progress.record_answer(3)
    assert progress.sequence == 5
    progress.record_answer(9)
    progress.record_poll(5)
    progress.record_poll(6)
    assert progress.sequence == 9
    progress.record_poll(3)
    assert progress.sequence == 3


def test_a_replica_of_another_log_began_again_and_late_replies_of_the_old_one_do_not_count() -> (
    None
):
    progress = ReplicaProgress(ManualClock())
    progress.record_poll(5, "old")
    progress.record_answer(9, "old")
    progress.record_poll(7, "new")
    assert progress.sequence == 7
    progress.record_answer(12, "old")
    assert progress.sequence == 7
    progress.record_answer(8, "new")
    progress.record_answer(9)
    assert progress.sequence == 9


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), max_size=40))
def test_in_any_history_only_old_writes_are_settled_and_little_is_remembered(
    steps: list[tuple[float, int]],
) -> None:
    clock = ManualClock()
    progress, sequence = ReplicaProgress(clock), 0
    came = [(clock(), 0)]
    for seconds, more in steps:
        clock.advance(seconds)
        sequence += more
        progress.record_answer(sequence)
        came.append((clock(), sequence))
        assert progress.sequence == sequence
        assert progress.settled <= sequence
        # at most a step before it is old enough
        old = [known for at, known in came if at <= clock() - SETTLED_SECONDS + 0.2]
        assert progress.settled <= max(old, default=0)
    assert len(progress._history) <= SETTLED_SECONDS / 0.1 + 42


def test_thousands_of_writes_in_a_moment_are_remembered_as_few() -> None:
    clock = ManualClock()
    progress = ReplicaProgress(clock)
    for sequence in range(1, 10_000):
        clock.advance(0.0001)
        progress.record_answer(sequence)
    assert len(progress._history) < 20
    assert progress.sequence == 9_999
