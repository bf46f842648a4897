"""How far logs have got, by all that is known of them."""

from dataclasses import replace

from fakes import shard_info
from manual_clock import ManualClock

from winnow.stateless.cluster.sequences import MAX_WAIT_FOR_REPLICA, LastKnownWrites

INFO = shard_info(shards=1, generation="g", sequence=5, log_id="log")


def test_writes_that_nodes_report_are_reached_and_none_is_needed() -> None:
    known = LastKnownWrites(ManualClock())
    assert (known.reached(INFO), known.latest(INFO), known.required(INFO)) == (5, 5, 0)


def test_an_acknowledged_write_is_needed_before_any_node_reports_it() -> None:
    known = LastKnownWrites(ManualClock())
    known.record_write(INFO, 7)
    known.record_write(INFO, 6)
    assert (known.reached(INFO), known.latest(INFO), known.required(INFO)) == (5, 7, 7)


def test_a_write_that_an_answer_included_is_reached() -> None:
    known = LastKnownWrites(ManualClock())
    known.record_answer(INFO, 8)
    assert (known.reached(INFO), known.latest(INFO), known.required(INFO)) == (8, 8, 0)


def test_a_write_that_no_replica_shows_is_needed_for_a_while_only() -> None:
    clock = ManualClock()
    known = LastKnownWrites(clock)
    known.record_write(INFO, 7)
    assert known.required(INFO) == 7
    clock.advance(MAX_WAIT_FOR_REPLICA)
    assert (known.latest(INFO), known.required(INFO)) == (7, 5)
    assert known.required(replace(INFO, sequence=9)) == 7


def test_a_write_stays_needed_for_a_while_after_the_last_replica_with_it_has_gone() -> None:
    """Another replica, which reads the journal more slowly, may soon have it."""
    clock = ManualClock()
    known = LastKnownWrites(clock)
    known.record_write(INFO, 7)
    assert known.required(replace(INFO, sequence=7)) == 7
    clock.advance(10 * MAX_WAIT_FOR_REPLICA)
    assert known.required(INFO) == 7
    clock.advance(MAX_WAIT_FOR_REPLICA)
    assert known.required(INFO) == 5


def test_another_log_counts_its_own_writes() -> None:
    known = LastKnownWrites(ManualClock())
    known.record_write(INFO, 7)
    known.record_answer(INFO, 7)
    other = replace(INFO, log_id="restored", sequence=2)
    assert (known.reached(other), known.latest(other), known.required(other)) == (2, 2, 0)


def test_a_late_reply_of_another_log_says_nothing() -> None:
    known = LastKnownWrites(ManualClock())
    known.record_answer(INFO, 70, "old")
    known.record_write(INFO, 70, "old")
    assert (known.reached(INFO), known.latest(INFO), known.required(INFO)) == (5, 5, 0)
    known.record_answer(INFO, 7, "log")
    assert known.latest(INFO) == 7


def test_a_write_without_a_log_is_of_the_log_of_the_shard() -> None:
    known = LastKnownWrites(ManualClock())
    known.record_answer(INFO, 7)
    assert known.latest(INFO) == 7


def test_the_first_write_of_a_shard_begins_its_log_and_the_next_looks_tell_of_it() -> None:
    clock, unwritten = ManualClock(), replace(INFO, log_id="", sequence=0)
    known = LastKnownWrites(clock)
    known.record_answer(unwritten, 1, "log")
    assert known.latest(unwritten) == 1
    assert known.latest(replace(INFO, sequence=0)) == 1
    clock.advance(MAX_WAIT_FOR_REPLICA)
    assert known.latest(unwritten) == 0, "it was a late reply of the log before a restore"
