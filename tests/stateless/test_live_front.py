"""Answers while the index changes: a front over replicas that follow logs."""

import asyncio

import pytest
from fakes import ENCODED
from live_front import LiveFront
from logged_shards import LiveReplica, ShardLog, counted
from tenacious import LATER, happens, turn

from winnow.domain.answered import Answered
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import ReadScope, RetrievalDepth
from winnow.domain.write import Position
from winnow.errors import DeadlineExceededError, InvalidRequestError, UnavailableError
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.stateless.cluster.node import ReplicaAt
from winnow.stateless.cluster.sequences import MAX_WAIT_FOR_REPLICA
from winnow.stateless.policy.progress import SETTLED_SECONDS

BUILT = {"a": (1, 2), "b": (2, 3), "c": (9,)}
LATE_AT_ONCE = HedgeSettings(min_samples=1, min_delay=0.0, budget=1.0, reserve=0)


def one_log(names: str) -> tuple[ShardLog, list[LiveReplica]]:
    log, index = ShardLog(BUILT), counted(BUILT)
    return log, [LiveReplica(name, log, index=index) for name in names]


def answered(found: Answered) -> set[str]:
    return {answer.reading.passage.id for answer in found.answers}


def sequences(found: Answered) -> list[int | None]:
    return [part.sequence for part in found.coverage.shards]


async def test_an_answer_says_the_last_write_that_each_shard_knew_of() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    assert sequences(await front.ask()) == [0]
    log.put("d", (1,))
    x.follow()
    assert sequences(await front.ask(fresh=True)) == [1]


async def test_a_deletion_that_was_acknowledged_is_not_answered_from_memory() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    assert "a" in answered(await front.ask())
    assert (await front.ask()).cached
    front.snapshot.record_write(0, log.delete("a"))
    x.follow()
    again = await front.ask()
    assert not again.cached
    assert "a" not in answered(again)


async def test_an_answer_that_was_being_found_when_a_passage_was_deleted_is_not_kept() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)

    def deleted() -> None:
        front.snapshot.record_write(0, log.delete("a"))
        x.follow()

    x.before_reading.append(deleted)
    assert "a" in answered(await front.ask())
    again = await front.ask()
    assert not again.cached
    assert "a" not in answered(again)


async def test_who_asks_after_a_deletion_does_not_join_a_question_from_before_it() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    x.hangs = asyncio.Event()
    before = asyncio.create_task(front.ask())
    await happens(lambda: len(x.asked) == 1)
    front.snapshot.record_write(0, log.delete("a"))
    x.follow()
    after = asyncio.create_task(front.ask())
    await happens(lambda: len(x.asked) == 2)
    x.hangs.set()
    assert not (await after).cached
    assert "a" not in answered(await after)
    await before


@pytest.mark.parametrize("scope", [ReadScope.GLOBAL, ReadScope.PER_SHARD])
async def test_a_late_reply_from_before_a_restore_says_nothing_of_the_new_log(
    scope: ReadScope,
) -> None:
    """Or the front would wait for writes that the new log does not have, and remember nothing."""
    log, (old,) = one_log("x")
    for number in range(5):
        log.put(f"d{number}", (1,))
    old.follow()
    front = LiveFront(old)
    old.hangs = asyncio.Event()
    late = asyncio.create_task(front.ask(read_scope=scope))
    await happens(lambda: len(old.asked) == 1)
    restored = ShardLog(BUILT, "restored")
    restored.put("d", (1,))
    new = LiveReplica("x", restored, index=counted(BUILT))
    new.follow()
    front.restart(new)
    old.hangs.set()
    assert sequences(await late) == [None], "its writes are no writes of this log"
    front.snapshot.record_write(0, log.put("d9", (1,)), log.log_id)
    assert front.cluster.latest_sequences() == {0: 1}
    assert not (await front.ask(read_scope=scope)).cached
    assert (await front.ask(read_scope=scope)).cached


@pytest.mark.parametrize("names_log", [True, False])
async def test_the_next_answer_tells_of_a_write_before_the_next_look_does(names_log: bool) -> None:
    """Also of the first one, before which there is no log; and of a node of an earlier version."""
    log, (x,) = one_log("x")
    x.names_log = names_log
    log.log_id, name = "", log.log_id
    front = LiveFront(x)
    log.log_id = name
    for number in range(2):
        log.put(f"d{number}", (1,))
        x.follow()
        await front.ask(fresh=True)
        assert front.cluster.latest_sequences() == {0: number + 1}
        front.look()
    assert front.cluster.latest_sequences() == {0: 2}


async def test_a_write_that_somebody_else_was_told_of_is_known_from_the_next_look() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    await front.ask()
    log.delete("a")
    x.follow()
    front.look()
    assert not (await front.ask()).cached


async def test_who_names_a_write_is_not_answered_from_before_it() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    await front.ask()
    log.put("d", (1,))
    x.follow()
    found = await front.ask("Who?", Position(0, 1))
    assert not found.cached
    assert sequences(found) == [1]


async def test_who_names_a_write_that_is_known_gets_the_answer_that_was_kept() -> None:
    log, (x,) = one_log("x")
    log.put("d", (1,))
    x.follow()
    front = LiveFront(x)
    await front.ask()
    assert (await front.ask("Who?", Position(0, 1))).cached


async def test_a_shard_that_does_not_get_so_far_is_late_and_says_how_far_it_is() -> None:
    log, (x,) = one_log("x")
    other = LiveReplica("y", ShardLog({"z": (5,)}, "other"), 1, 2, x.index)
    x.shards = 2
    log.put("d", (1,))
    x.follow()
    found = await LiveFront(x, other).ask("Who?", Position(0, 7))
    part = found.coverage.shards[0]
    assert part.status is ShardStatus.TIMEOUT
    assert part.reason.startswith("waited for write 7, but the shard has only write 1")
    assert answered(found) == {"z"}


async def test_if_no_shard_gets_so_far_that_is_the_error() -> None:
    _, (x,) = one_log("x")
    with pytest.raises(
        DeadlineExceededError, match="waited for write 7, but the shard has only write 0"
    ):
        await LiveFront(x).ask("Who?", Position(0, 7))


async def test_a_position_of_a_shard_that_is_not_there_is_refused_by_name() -> None:
    _, (x,) = one_log("x")
    with pytest.raises(InvalidRequestError, match="after: shard 1000000 is not one of 0 to 0"):
        await LiveFront(x).ask("Who?", Position(1_000_000, 1))


async def test_replicas_of_one_log_are_asked_for_one_another_whatever_they_merged() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1,))
    log.delete("b")
    for each in (x, y):
        each.follow()
    x.merge()
    front = LiveFront(x, y)
    assert front.cluster.reached_sequence(0) == 2
    for _ in range(20):
        found = await front.ask(fresh=True)
        assert answered(found) == {"a", "c", "d"}
        assert found.coverage.complete
    assert x.asked
    assert y.asked


async def test_what_one_replica_found_is_read_on_another_with_other_rows() -> None:
    log, (x, y) = one_log("xy")
    log.delete("a")
    log.put("d", (1,))
    for each in (x, y):
        each.follow()
    x.merge()
    shard = LiveFront(x, y).cluster.searchers[0]
    for finds, reads in ((x, y), (y, x)):
        hits = (await finds.retrieve(ENCODED, RetrievalDepth(passages=3), LATER)).hits
        finds.fails = UnavailableError("connection refused")
        for _ in range(5):
            read = await shard.read(ENCODED, hits, LATER)
            assert {each.passage.id for each in read.readings} == {"b", "c", "d"}
        finds.fails = None
        assert hits[0].generation != reads.generation


async def test_a_passage_that_another_replica_has_dropped_is_retrieved_again() -> None:
    log, (x, y) = one_log("xy")
    front = LiveFront(x, y)

    def merged() -> None:
        log.delete("a")
        for each in (x, y):
            each.follow()
            each.merge()

    x.before_reading, y.before_reading = [merged], [merged]
    found = await front.ask(fresh=True)
    assert found.coverage.complete
    assert sequences(found) == [0], "what it said first it knew each time"


async def test_the_replica_that_has_got_so_far_is_asked() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1,))
    y.follow()
    front = LiveFront(x, y)
    for _ in range(20):
        assert sequences(await front.ask("Who?", Position(0, 1), fresh=True)) == [1]
    assert not x.asked


async def test_a_replica_that_lags_is_asked_only_if_no_other_is_there() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1,))
    y.follow()
    front = LiveFront(x, y)
    front.clock.advance(SETTLED_SECONDS)
    for _ in range(20):
        await front.ask(fresh=True)
    assert not x.asked
    front.kill("y")
    front.look()
    assert sequences(await front.ask(fresh=True)) == [0]


async def test_how_far_a_replica_lags_is_in_the_metrics() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1,))
    log.put("e", (1,))
    y.follow()
    front = LiveFront(x, y)
    labels = {"shard": "0", "replica": "x"}
    name = "winnow_front_replica_lag_writes"
    assert front.registry.get_sample_value(name, labels) == 2
    x.follow()
    front.look()
    assert front.registry.get_sample_value(name, labels) == 0


async def test_a_late_question_goes_to_a_replica_of_another_generation() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1,))
    for each in (x, y):
        each.follow()
    x.merge()
    front = LiveFront(x, y, hedge=LATE_AT_ONCE)
    for _ in range(5):
        await front.ask(fresh=True)
    asked = len(x.asked) + len(y.asked)
    x.hangs = asyncio.Event()
    found = await front.ask(fresh=True)
    if len(x.asked) + len(y.asked) == asked + 1:  # y was asked first
        y.hangs, x.hangs = x.hangs, None
        found = await front.ask(fresh=True)
    assert found.coverage.complete
    assert sequences(found) == [1]


async def test_what_was_acknowledged_is_waited_for_a_while_and_then_given_up() -> None:
    """The replica that had it is gone, and the other one does not catch up."""
    log, (x, y) = one_log("xy")
    front = LiveFront(x, y)
    front.snapshot.record_write(0, log.delete("a"))
    y.follow()
    front.kill("y")
    front.look()
    with pytest.raises(DeadlineExceededError, match="waited for write 1"):
        await front.ask()
    front.clock.advance(MAX_WAIT_FOR_REPLICA)
    front.look()
    found = await front.ask()
    assert (sequences(found), found.cached) == ([0], False)
    assert not (await front.ask()).cached, "an answer from before a write is never kept"


async def test_waiting_for_a_write_that_never_comes_gets_no_replica_ejected() -> None:
    _, (x, y) = one_log("xy")
    front = LiveFront(x, y)
    for _ in range(10):
        with pytest.raises(DeadlineExceededError):
            await front.ask("Who?", Position(0, 10**15))
    for name in "xy":
        ejections = front.registry.get_sample_value(
            "winnow_front_ejections_total", {"shard": "0", "replica": name}
        )
        assert not ejections


async def test_all_retrievals_of_a_question_are_weighed_alike() -> None:
    log, (x, y) = one_log("xy")
    log.put("d", (1, 2))
    for each in (x, y):
        each.follow()
    front = LiveFront(x, y, hedge=LATE_AT_ONCE)
    await front.count()
    for _ in range(5):
        x.asked.clear()
        y.asked.clear()
        await front.ask(fresh=True)
        weights = {(each.rarities, each.mean_length) for each in (*x.asked, *y.asked)}
        assert len(weights) == 1
        assert all(rarities for rarities, _ in weights)


async def test_other_counts_of_words_are_another_version() -> None:
    log, (x,) = one_log("x")
    log.put("d", (1, 2))
    x.follow()
    front = LiveFront(x)
    await front.ask()
    assert (await front.ask()).cached
    await front.count()
    assert not (await front.ask()).cached
    assert (await front.ask()).cached


async def test_one_that_comes_with_a_log_of_its_own_is_refused_by_name() -> None:
    _, (x,) = one_log("x")
    y = LiveReplica("y", ShardLog(BUILT, "another"), index=x.index)
    front = LiveFront(x)
    front.replicas["y"] = y
    front.nodes.nodes["y"] = front._open("y")
    front.look()
    assert front.builder.view.refused[ReplicaAt("y", 0)].startswith(
        "shard 0 of 1 has log another, but other replicas serve log log"
    )
    await turn()


async def test_a_write_that_nobody_has_heard_of_is_not_waited_for_for_an_hour() -> None:
    _, (x,) = one_log("x")
    front = LiveFront(x)
    with pytest.raises(DeadlineExceededError):
        await front.ask("Who?", Position(0, 10**6), left=3_600)
    assert x.left <= 10
    await front.ask("Who?", Position(0, 0), left=3_600)
    assert x.left > 1_000


async def test_a_filter_by_a_field_that_a_write_may_have_brought_is_left_to_the_shards() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    with pytest.raises(InvalidRequestError, match="year"):
        await front.ask(where="year = 2015")
    front.snapshot.record_write(0, log.put("d", (1,)))
    x.follow()
    assert answered(await front.ask(where="year = 2015"))
    front.look()
    with pytest.raises(InvalidRequestError, match="year"):
        await front.ask(where="year = 2015")


async def test_where_every_shard_reads_its_own_writes_are_known_and_waited_for_too() -> None:
    log, (x,) = one_log("x")
    front = LiveFront(x)
    scope = ReadScope.PER_SHARD
    assert sequences(await front.ask(read_scope=scope)) == [0]
    log.put("d", (1,))
    x.follow()
    assert sequences(await front.ask("Who?", Position(0, 1), read_scope=scope)) == [1]
    with pytest.raises(
        DeadlineExceededError, match="waited for write 2, but the shard has only write 1"
    ):
        await front.ask("Who?", Position(0, 2), read_scope=scope)
