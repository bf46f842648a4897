"""The two read scopes over fake shards."""

import asyncio
import contextlib
from dataclasses import replace

import pytest
from fake_shards import LIMITS, find, passages, question
from fakes import FakeSearcher, reading
from manual_clock import ManualClock
from tenacious import LONG, happens, turn
from virtual_loop import VirtualLoop, in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.answered import Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import (
    PartialResults,
    Question,
    ReadScope,
    RetrievalDepth,
    Retriever,
    WaitPolicy,
)
from winnow.domain.stopping import StoppingRule
from winnow.errors import DeadlineExceededError, OverloadedError, UnavailableError
from winnow.stateless.answer.failures import Failure
from winnow.stateless.answer.search_result import SearchResult


def two() -> tuple[FakeSearcher, FakeSearcher]:
    near = FakeSearcher([reading("a", distance=0.1), reading("b", distance=0.2)])
    far = FakeSearcher([reading("c", distance=0.8), reading("d", distance=0.9)])
    return near, far


async def test_globally_only_the_nearest_of_all_are_read() -> None:
    near, far = two()
    found = await find([near, far], question(ReadScope.GLOBAL))
    assert passages(found) == {"a", "b"}
    assert (near.read_rows, far.read_rows) == ([0, 1], [])
    assert not found.failures


async def test_per_shard_every_shard_reads_its_own_best() -> None:
    near, far = two()
    timings = Timings()
    found = await find([near, far], question(ReadScope.PER_SHARD, 1), timings=timings)
    assert passages(found) == {"a", "c"}
    assert set(timings.shards) == {0, 1}


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_a_dead_shard_costs_only_its_own_part(scope: ReadScope) -> None:
    near, far = two()
    near.fails = UnavailableError("connection refused")
    found = await find([near, far], question(scope))
    assert passages(found) == {"c", "d"}
    assert found.failures[0].status is ShardStatus.UNAVAILABLE
    assert found.failures[0].detail == "connection refused"


async def test_a_shard_that_fails_while_reading_is_a_failure() -> None:
    near, far = two()
    near.fails_reading = OverloadedError("full")
    found = await find([near, far], question(ReadScope.GLOBAL, 3))
    assert passages(found) == {"c"}
    assert found.failures[0].status is ShardStatus.OVERLOADED


def test_a_hung_shard_leaves_time_to_read_the_others() -> None:
    near, far = two()
    near.hangs = True
    with contextlib.closing(VirtualLoop()) as loop:
        deadline = Deadline.after(0.5, loop.time)
        asking = find([near, far], question(ReadScope.GLOBAL), deadline=deadline)
        found = loop.run_until_complete(asking)
        assert passages(found) == {"c", "d"}
        assert found.failures[0].status is ShardStatus.TIMEOUT
        assert loop.time() > 0
        assert not deadline.expired()


async def test_reading_stops_once_nothing_unread_is_likely_to_win() -> None:
    near = FakeSearcher([reading("a", 5.0, distance=0.1), reading("b", 1.0, distance=0.2)])
    far = FakeSearcher([reading("c", 9.0, distance=0.8), reading("d", 1.0, distance=0.9)])
    for bar, rows in ((4.0, []), (12.0, [0, 1])):
        far.read_rows = []
        found = await find(
            [near, far],
            question(ReadScope.GLOBAL, 4),
            rule=StoppingRule(1.0, 1.0, bar, first_look=2),
        )
        assert far.read_rows == rows
        assert sum(map(len, found.readings.values())) == 2 + len(rows)
        assert not found.failures


SAFE = StoppingRule(1.0, 1.0, bar=4.0)
"""Of the passages below, once the first is read."""
UNSAFE = StoppingRule(0.0, 0.0, bar=100.0)


async def read_ahead(
    rule: StoppingRule, most: int, asked: Question, *shards: FakeSearcher
) -> SearchResult:
    """What is found where up to `most` passages are read at once; fails where that hangs."""
    limits = replace(LIMITS, read_ahead=most)
    return await find(shards, asked, rule, limits=limits)


@pytest.mark.parametrize(("ahead", "idle", "read"), [(0, 2, 1), (2, 2, 2), (4, 3, 3), (4, 0, 1)])
async def test_reading_ahead_where_readers_are_idle_changes_nothing_that_counts(
    ahead: int, idle: int, read: int
) -> None:
    shard = FakeSearcher(
        # a later passage that would win, had it been asked for
        [reading("a", 5.0, distance=0.1), *(reading(n, 9.0, distance=0.2) for n in "bcd")],
        idle=idle,
    )
    found = await read_ahead(SAFE, ahead, question(ReadScope.GLOBAL, 4), shard)
    assert [r.passage.id for r in found.readings[0]] == ["a"]
    assert found.total_reads == read == len(shard.read_rows)
    assert found.needed_reads == 1


def needed_and_ahead() -> tuple[FakeSearcher, FakeSearcher]:
    """The first passage lies on one shard, the next one on another."""
    needed = FakeSearcher([reading("a", 5.0, distance=0.1), reading("c", distance=0.3)], idle=1)
    return needed, FakeSearcher([reading("b", 9.0, distance=0.2)], idle=1)


@pytest.mark.parametrize("partial", list(PartialResults))
@pytest.mark.parametrize("trouble", ["fails", "hangs"])
async def test_trouble_with_what_is_read_ahead_harms_no_answer_that_is_safe(
    trouble: str, partial: PartialResults
) -> None:
    needed, ahead = needed_and_ahead()
    if trouble == "fails":
        ahead.fails_reading = OverloadedError("full")
    else:
        ahead.hangs_reading = True
    asked = question(ReadScope.GLOBAL, 3, partial_results=partial)
    found = await read_ahead(SAFE, 4, asked, needed, ahead)
    assert [r.passage.id for r in found.readings[0]] == ["a"]
    assert not found.failures
    if trouble == "hangs":
        await asyncio.wait_for(ahead.released.wait(), LONG)


async def test_what_could_not_be_read_ahead_is_read_once_it_is_needed() -> None:
    needed, ahead = needed_and_ahead()
    ahead.fails_reading, ahead.failures_left = OverloadedError("full"), 1
    found = await read_ahead(UNSAFE, 4, question(ReadScope.GLOBAL, 3), needed, ahead)
    assert passages(found) == {"a", "b", "c"}
    assert not found.failures


async def test_what_was_read_ahead_is_not_read_again() -> None:
    shard = FakeSearcher([reading(n, distance=d) for d, n in enumerate("abcdefg")], idle=3)
    found = await read_ahead(UNSAFE, 4, question(ReadScope.GLOBAL, 7), shard)
    assert shard.read_rows == list(range(7))
    assert len(found.readings[0]) == found.total_reads == 7


async def test_what_a_shard_read_before_it_failed_is_kept() -> None:
    near = FakeSearcher([reading("a", distance=0.1), reading("b", distance=0.3)])
    far = FakeSearcher([reading("c", distance=0.2)])
    near.reads_before_failing = 1
    near.fails_reading = OverloadedError("full")
    found = await find(
        [near, far],
        question(ReadScope.GLOBAL, 3),
        rule=StoppingRule(1.0, 1.0, bar=100.0, first_look=2),
    )
    assert passages(found) == {"a", "c"}
    assert found.failures[0].status is ShardStatus.OVERLOADED


@in_virtual_time
async def test_a_wave_that_is_late_leaves_what_earlier_ones_read() -> None:
    shard = FakeSearcher([reading("a", distance=0.1), reading("b", distance=0.3)])
    shard.reads_before_failing, shard.hangs_reading = 1, True
    until = Deadline.after(0.2, ManualClock())
    found = await find([shard], question(ReadScope.GLOBAL, 2), replace(UNSAFE, first_look=1), until)
    assert passages(found) == {"a"}
    assert found.failures[0].status is ShardStatus.TIMEOUT


@in_virtual_time
async def test_what_was_read_ahead_is_kept_where_the_rest_of_a_wave_is_late() -> None:
    shard = FakeSearcher([reading(n, distance=d) for d, n in enumerate("abcd")], idle=2)
    # the first passage, the second one ahead, and then no more
    shard.reads_before_failing, shard.hangs_reading = 2, True
    limits = replace(LIMITS, read_ahead=2)
    rule = replace(UNSAFE, first_look=1)
    until = Deadline.after(0.3, ManualClock())
    found = await find([shard], question(ReadScope.GLOBAL, 4), rule, until, limits)
    assert passages(found) == {"a", "b"}
    assert found.total_reads == 2
    assert found.failures[0].status is ShardStatus.TIMEOUT


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_readings_of_a_shard_that_was_not_done_in_time_count_and_are_a_failure(
    scope: ReadScope,
) -> None:
    near, far = two()
    near.reads_in_time = 1
    found = await find([near, far], question(scope, 4))
    assert passages(found) == {"a", "c", "d"}
    assert found.failures == {
        0: Failure(ShardStatus.TIMEOUT, "1 of 2 passages were not read in time")
    }


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_where_partial_results_are_forbidden_an_unread_passage_is_an_error(
    scope: ReadScope,
) -> None:
    near, far = two()
    near.reads_in_time = 1
    asked = question(scope, 4, partial_results=PartialResults.FORBID)
    with pytest.raises(DeadlineExceededError, match="shard 0: 1 of 2 passages were not read"):
        await find([near, far], asked)


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_where_partial_results_are_forbidden_a_dead_shard_is_an_error(
    scope: ReadScope,
) -> None:
    near, far = two()
    far.fails = UnavailableError("connection refused")
    asked = question(scope, partial_results=PartialResults.FORBID, patience=WaitPolicy(0.5))
    with pytest.raises(UnavailableError, match=r"shard 1: .*: connection refused"):
        await find([near, far], asked)


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_once_enough_shards_have_answered_a_hung_one_is_given_up(scope: ReadScope) -> None:
    near, far = two()
    near.hangs = True
    asked = question(scope, patience=WaitPolicy(min_coverage=0.5, min_wait_factor=0.0))
    deadline = Deadline.after(60)
    found = await find([near, far], asked, deadline=deadline)
    assert passages(found) == {"c", "d"}
    assert found.failures[0].status is ShardStatus.ADAPTIVE


@pytest.mark.parametrize("scope", list(ReadScope))
@pytest.mark.parametrize("coverage", [0.0, 0.3, 0.6])
async def test_shards_that_find_nothing_cost_nobody_the_answer_of_a_slower_one(
    scope: ReadScope, coverage: float
) -> None:
    slow = FakeSearcher([reading("a", distance=0.1)], hangs=True)
    asked = question(scope, patience=WaitPolicy(coverage, 0.0, 0.001))
    finding = asyncio.create_task(find([FakeSearcher([]), FakeSearcher([]), slow], asked))
    await slow.hanging.wait()
    for _ in range(20):  # the others have long answered
        await asyncio.sleep(0)
    slow.go_on.set()
    found = await finding
    assert passages(found) == {"a"}
    assert not found.failures


async def test_shards_without_a_passage_take_no_time_from_the_one_that_has_them_all() -> None:
    best = FakeSearcher([reading("a", distance=0.1), reading("b", distance=0.2)])
    others = [FakeSearcher([reading(name, distance=0.9)]) for name in "cd"]
    asked = question(ReadScope.GLOBAL, patience=WaitPolicy(min_coverage=0.6, min_wait_factor=0.0))
    # retrieval may take no time from anybody here: all shards answer it in the same turn
    found = await find([best, *others], asked)
    assert passages(found) == {"a", "b"}
    assert not found.failures


async def test_of_the_shards_that_read_enough_are_waited_for_and_a_hung_one_is_given_up() -> None:
    near, far = two()
    near.hangs_reading = True
    asked = question(
        ReadScope.GLOBAL, 4, patience=WaitPolicy(min_coverage=0.5, min_wait_factor=0.0)
    )
    found = await find([near, far, FakeSearcher([])], asked)
    assert passages(found) == {"c", "d"}
    assert found.failures[0].status is ShardStatus.ADAPTIVE


async def test_shards_that_failed_to_retrieve_leave_the_rest_to_reach_the_minimum() -> None:
    quick, slow = two()
    slow.hangs_reading = True
    hung = [FakeSearcher([], hangs=True) for _ in range(2)]
    patience = WaitPolicy(min_coverage=0.5, min_wait_factor=0.0, max_wait_factor=0.0)
    asked = question(ReadScope.GLOBAL, 4, patience=patience)
    finding = asyncio.create_task(find([quick, slow, *hung], asked))
    await asyncio.wait_for(slow.hanging.wait(), LONG)
    await happens(lambda: len(quick.read_rows) == 2)
    for _ in range(5):
        await turn()
    slow.go_on.set()
    assert passages(await finding) == {"a", "b", "c", "d"}, "half of four shards is two"


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_a_question_that_waits_for_no_coverage_still_waits_for_an_answer(
    scope: ReadScope,
) -> None:
    asked = question(scope, patience=WaitPolicy(min_coverage=0.0, min_wait_factor=0.0))
    found = await find([FakeSearcher([reading("a")])], asked)
    assert passages(found) == {"a"}


@pytest.mark.parametrize(
    ("retriever", "depth"),
    [
        (Retriever.DENSE, RetrievalDepth(passages=3)),
        (Retriever.HYBRID, RetrievalDepth(passages=3, candidates=50, by_words=20)),
        (Retriever.SPARSE, RetrievalDepth(passages=3, by_words=50)),
    ],
)
@pytest.mark.parametrize("scope", list(ReadScope))
async def test_each_retriever_looks_as_far_as_it_has_to(
    retriever: Retriever, depth: RetrievalDepth, scope: ReadScope
) -> None:
    shard = FakeSearcher([reading("a")])
    asked = replace(question(scope, 3), retriever=retriever)
    limits = replace(LIMITS, candidates=50, word_candidates=20)
    await find([shard], asked, limits=limits)
    assert shard.depths == [depth]


@pytest.mark.parametrize("scope", list(ReadScope))
async def test_a_sparse_retriever_reads_the_best_by_words(scope: ReadScope) -> None:
    near = replace(reading("near", distance=0.1), words=0.5)
    wordy = replace(reading("wordy", distance=3.0), words=9.0)
    asked = replace(question(scope, 1), retriever=Retriever.SPARSE)
    found = await find([FakeSearcher([near]), FakeSearcher([wordy])], asked)
    assert passages(found) == ({"wordy"} if scope is ReadScope.GLOBAL else {"near", "wordy"})
