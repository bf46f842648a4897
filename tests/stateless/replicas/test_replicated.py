"""A shard with replicas, over fake ones."""

import asyncio
import random
import traceback
from collections.abc import Iterable
from dataclasses import replace

import pytest
from fakes import ENCODED, FakeSearcher, reading
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from tenacious import LONG, happens, turn
from virtual_loop import in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.listing import CountRequest, PassageListing, PassageLookup
from winnow.domain.question import RetrievalDepth
from winnow.errors import (
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    NotLoadedError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.outliers import EjectionState, OutlierSettings
from winnow.replicas.policy.replicas import Replica, ReplicaSettings
from winnow.replicas.policy.retrying import RetrySettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.searcher import Read
from winnow.stateless.metrics import ReplicaMetrics
from winnow.stateless.policy.progress import SETTLED_SECONDS
from winnow.stateless.replicas.replicated import ReplicatedSearcher

HEDGING = HedgeSettings(min_samples=1, min_delay=0.0, budget=1.0, reserve=0)
"""Late at once; every request pays for a hedge."""
OUTLIERS = OutlierSettings(consecutive_failures=2, base_ejection_seconds=5.0)
SWAPPED = GenerationGoneError("rows of an older generation")
DEAD = UnavailableError("connection refused")
NEVER_LATE = HedgeSettings(min_samples=10**6)


class Shard:
    """A replicated shard and the fakes behind it."""

    def __init__(self, names: str, hedge: HedgeSettings = NEVER_LATE, retries: int = 1) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.fakes = {name: FakeSearcher([reading(name)]) for name in "abcd"}
        policies = ReplicaPolicies(
            ReplicaSettings(outliers=OUTLIERS), hedge, RetrySettings(max_retries=retries)
        )
        self.searcher = ReplicatedSearcher(
            0,
            self.fakes.__getitem__,
            policies,
            clock=self.clock,
            rng=random.Random(1),
            metrics=ReplicaMetrics(self.registry),
        )
        self.searcher.update(names)

    def __getitem__(self, name: str) -> FakeSearcher:
        return self.fakes[name]

    async def ask(self, left: float = 60.0, after: int = 0) -> str:
        """The name of the replica that answered."""
        depth = RetrievalDepth(passages=1, after=after)
        found = await self.searcher.retrieve(ENCODED, depth, Deadline.after(left, self.clock))
        return found.hits[0].passage_id

    async def ask_first(self, name: str, after: int = 0) -> "asyncio.Task[str]":
        """A question that has been sent to a certain replica, which hangs."""
        fake = self[name]
        fake.hangs = True
        fake.hanging.clear()
        others = [other for other in self.known if other != name]
        for other in others:  # busier than any, so that it is not chosen
            self.known[other].outstanding += 1000
        task = asyncio.create_task(self.ask(after=after))
        await asyncio.wait_for(fake.hanging.wait(), LONG)
        for other in others:
            self.known[other].outstanding -= 1000
        return task

    @property
    def known(self) -> dict[str, Replica]:
        return self.searcher._pool.replicas.by_address

    def count(self, metric: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"winnow_front_{metric}", {"shard": "0", **labels})
        return value or 0.0

    def series(self, name: str, metric: str) -> float | None:
        """A figure of one replica; None if there is none."""
        labels = {"shard": "0", "replica": name}
        return self.registry.get_sample_value(f"winnow_front_{metric}", labels)

    def idle(self) -> bool:
        return all(replica.outstanding == 0 for replica in self.known.values())


def state_of(name: str, shard: Shard) -> EjectionState:
    return shard.known[name].record.state


async def test_with_one_replica_it_is_that_replica() -> None:
    shard = Shard("a")
    assert await shard.ask() == "a"
    assert shard.idle()


async def test_every_replica_gets_its_part() -> None:
    shard = Shard("abc")
    assert {await shard.ask() for _ in range(50)} == set("abc")


async def test_reading_and_searching_go_to_replicas_too() -> None:
    shard = Shard("ab")
    deadline = Deadline.after(60, shard.clock)
    found = await shard.searcher.retrieve(ENCODED, RetrievalDepth(passages=1), deadline)
    assert len((await shard.searcher.read(ENCODED, found.hits, deadline)).readings) == 1
    assert (
        len((await shard.searcher.search(ENCODED, RetrievalDepth(passages=1), deadline)).readings)
        == 1
    )
    assert (await shard.searcher.info(deadline)).passages == 1


async def test_without_replicas_it_says_why() -> None:
    shard = Shard("")
    with pytest.raises(UnavailableError, match="no replica of shard 0 was found yet"):
        await shard.ask()
    shard.searcher.update("", NotLoadedError("graph.hnsw is damaged"))
    with pytest.raises(NotLoadedError, match=r"graph\.hnsw"):
        await shard.ask()


@pytest.mark.parametrize("error", [UnavailableError("gone"), OverloadedError("full")])
async def test_an_error_that_another_replica_may_not_have_is_retried_there(
    error: WinnowError,
) -> None:
    shard = Shard("ab")
    shard["a"].fails = error
    assert {await shard.ask() for _ in range(20)} == {"b"}
    assert shard.count("retries_total", result="sent") == shard.count("retries_total", result="won")
    assert shard.count("retries_total", result="won") > 0
    assert shard.idle()


@in_virtual_time
async def test_it_is_retried_once_and_no_more() -> None:
    shard = Shard("abcd")
    for fake in shard.fakes.values():
        fake.fails = UnavailableError("gone")
    with pytest.raises(UnavailableError, match="gone"):
        await shard.ask()
    assert sum(fake.calls for fake in shard.fakes.values()) == 2


async def test_rows_of_a_generation_are_read_where_it_is_still_held() -> None:
    """A replica that has moved on to the next generation gets no strike for that."""
    shard = Shard("ab")
    deadline = Deadline.after(60, shard.clock)
    found = await shard.searcher.retrieve(ENCODED, RetrievalDepth(passages=1), deadline)
    shard["a"].fails_reading = SWAPPED
    for _ in range(20):
        read = await shard.searcher.read(ENCODED, found.hits, deadline)
        assert read.readings[0].passage.id == "b"
    assert shard.count("retries_total", result="won") > OUTLIERS.consecutive_failures
    assert state_of("a", shard) is EjectionState.ACTIVE


@in_virtual_time
async def test_a_generation_that_no_replica_holds_is_said_to_be_gone() -> None:
    shard = Shard("ab")
    for name in "ab":
        shard[name].fails = SWAPPED
    with pytest.raises(GenerationGoneError, match="older generation"):
        await shard.ask()
    assert shard["a"].calls == shard["b"].calls == 1


@pytest.mark.parametrize("order", [(SWAPPED, DEAD), (DEAD, SWAPPED)])
async def test_a_generation_is_gone_also_where_another_replica_cannot_be_reached(
    order: tuple[WinnowError, WinnowError],
) -> None:
    """The caller can retrieve again, from the replica that has moved on."""
    shard = Shard("ab")
    shard.known["b"].outstanding += 1000  # asked second
    shard["a"].fails, shard["b"].fails = order
    with pytest.raises(GenerationGoneError, match="older generation"):
        await shard.ask()


@pytest.mark.parametrize("error", [IdentityError("other"), DeadlineExceededError("late")])
@in_virtual_time
async def test_an_error_that_every_replica_would_have_is_not_retried(error: WinnowError) -> None:
    shard = Shard("ab")
    for fake in shard.fakes.values():
        fake.fails = error
    with pytest.raises(type(error)):
        await shard.ask()
    assert sum(fake.calls for fake in shard.fakes.values()) == 1


async def test_a_bug_is_not_retried_and_blamed_on_the_replica() -> None:
    shard = Shard("a")

    async def bug(*_: object) -> None:
        raise ZeroDivisionError

    shard["a"].retrieve = bug  # type: ignore[method-assign, assignment]
    with pytest.raises(ZeroDivisionError):
        await shard.ask()
    assert shard.idle()


async def test_a_late_request_is_sent_to_another_replica_and_the_loser_is_cancelled() -> None:
    shard = Shard("ab", HEDGING)
    await shard.ask()
    asked = await shard.ask_first("a")
    assert await asyncio.wait_for(asked, LONG) == "b"
    await asyncio.wait_for(shard["a"].released.wait(), LONG)
    assert shard.idle()
    assert shard.count("hedges_total", result="sent") == 1
    assert shard.count("hedges_total", result="won") == 1


async def test_a_hedge_that_lost_is_cancelled_and_no_replica_is_blamed() -> None:
    shard = Shard("ab", HEDGING)
    await shard.ask()
    shard["b"].hangs = True
    asked = await shard.ask_first("a")
    await asyncio.wait_for(shard["b"].hanging.wait(), LONG)
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    await asyncio.wait_for(shard["b"].released.wait(), LONG)
    assert shard.count("hedges_total", result="won") == 0
    assert shard.idle()


async def read_by_two(left: float) -> tuple[Shard, "asyncio.Task[Read]"]:
    """A read that hangs where it was sent first; its hedge reads one of three passages in time."""
    shard = Shard("ab", HEDGING)
    for fake in shard.fakes.values():
        fake.readings = [reading(name, distance=d) for d, name in enumerate("xyz")]
    deadline = Deadline.after(60, shard.clock)
    hits = (await shard.searcher.retrieve(ENCODED, RetrievalDepth(passages=3), deadline)).hits
    await shard.searcher.read(ENCODED, hits, deadline)  # now it is known what is late
    shard["a"].hangs_reading, shard["b"].reads_in_time = True, 1
    shard.known["b"].outstanding += 1000
    until = Deadline.after(left, shard.clock)
    reading_all = asyncio.create_task(shard.searcher.read(ENCODED, hits, until))
    await asyncio.wait_for(shard["a"].hanging.wait(), LONG)
    shard.known["b"].outstanding -= 1000
    await happens(lambda: shard.count("hedges_total", result="sent") > 0)
    return shard, reading_all


async def test_a_partial_read_does_not_replace_one_that_may_be_whole() -> None:
    shard, reading_all = await read_by_two(left=60)
    await happens(lambda: bool(shard["b"].read_rows))
    for _ in range(5):
        await turn()
    shard["a"].go_on.set()
    read = await asyncio.wait_for(reading_all, LONG)
    assert (len(read.readings), read.unread) == (3, 0)
    assert shard.idle()


@in_virtual_time
async def test_a_part_is_better_than_nothing_where_the_other_one_is_silent() -> None:
    shard, reading_all = await read_by_two(left=0.2)
    read = await asyncio.wait_for(reading_all, LONG)
    assert (len(read.readings), read.unread) == (1, 2)
    assert shard.count("hedges_total", result="won") == 1
    await asyncio.wait_for(shard["a"].released.wait(), LONG)
    assert shard.idle()


async def test_a_part_is_better_than_nothing_where_the_other_one_fails() -> None:
    shard, reading_all = await read_by_two(left=60)
    await happens(lambda: bool(shard["b"].read_rows))
    for _ in range(5):
        await turn()
    shard.searcher.update("b", lost="a")
    read = await asyncio.wait_for(reading_all, LONG)
    assert (len(read.readings), read.unread) == (1, 2)
    assert shard.idle()


async def test_a_caller_that_gives_up_with_a_partial_read_leaves_nothing_behind() -> None:
    shard, reading_all = await read_by_two(left=60)
    await happens(lambda: bool(shard["b"].read_rows))
    for _ in range(5):
        await turn()
    reading_all.cancel()
    await asyncio.wait([reading_all])
    await asyncio.wait_for(shard["a"].released.wait(), LONG)
    assert reading_all.cancelled()
    assert shard.idle()


async def test_no_hedge_is_sent_that_the_budget_does_not_allow() -> None:
    shard = Shard("ab", replace(HEDGING, budget=0.01, initial=0))
    await shard.ask()
    asked = await shard.ask_first("a")
    # when it is overdue, and when it is late, too, if the other has nothing in hand by then
    await happens(lambda: shard.count("hedges_total", result="refused") >= 1)
    assert not asked.done()
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    assert shard.count("hedges_total", result="sent") == 0
    assert shard.idle()


@in_virtual_time
async def test_the_reserve_is_for_replicas_under_suspicion_before_they_are_overdue() -> None:
    kept = replace(HEDGING, min_delay=0.001, overdue_factor=1e6, burst=200, reserve=100)
    shard = Shard("ab", kept)
    await shard.ask()
    first = await shard.ask_first("a")
    await happens(lambda: shard.count("hedges_total", result="refused") == 1)
    shard.known["a"].record.record_outcome(False, ReplicaOutcome.BEATEN)
    second = await shard.ask_first("a")
    assert await asyncio.wait_for(second, LONG) == "b"
    assert await asyncio.wait_for(first, LONG) == "b", "beaten twice, the replica is given up"


@pytest.mark.parametrize(("in_hand", "refused"), [(0, 1), (1, 0)])
async def test_a_late_request_asks_only_the_idle_and_an_overdue_one_also_the_busy(
    in_hand: int, refused: int
) -> None:
    # the budget has hedges for what is overdue alone, and says when it was asked for others
    shard = Shard("ab", replace(HEDGING, reserve=10, initial=5))
    await shard.ask()
    shard.known["a"].latency.add(1.0)
    shard.known["b"].latency.add(100.0)
    shard.known["b"].outstanding += in_hand
    shard["a"].hangs = True
    assert await asyncio.wait_for(shard.ask(), LONG) == "b"
    assert shard.count("hedges_total", result="refused") == refused
    assert shard.count("hedges_total", result="won") == 1


@in_virtual_time
async def test_an_ejected_replica_is_probed_by_a_retrieval_and_later_by_any_call() -> None:
    shard = Shard("ab")
    deadline = Deadline.after(1_000, shard.clock)
    found = await shard.searcher.retrieve(ENCODED, RetrievalDepth(passages=1), deadline)
    record = shard.known["b"].record

    record.eject()
    shard.clock.advance(OUTLIERS.base_ejection_seconds)
    await shard.searcher.read(ENCODED, found.hits, deadline)
    await shard.searcher.search(ENCODED, RetrievalDepth(passages=1), deadline)
    assert state_of("b", shard) is EjectionState.HALF_OPEN
    assert await shard.ask() == "b"
    assert state_of("b", shard) is EjectionState.ACTIVE

    record.eject()
    shard.clock.advance(2 * OUTLIERS.base_ejection_seconds + OUTLIERS.brief_probe_period)
    await shard.searcher.search(ENCODED, RetrievalDepth(passages=1), deadline)
    assert state_of("b", shard) is EjectionState.ACTIVE


async def test_while_a_hedge_runs_a_failure_is_waited_out() -> None:
    shard = Shard("ab", HEDGING)
    await shard.ask()
    shard["b"].hangs = True
    asked = await shard.ask_first("a")
    await asyncio.wait_for(shard["b"].hanging.wait(), LONG)
    shard.searcher.update("b", lost="a")
    await asyncio.wait_for(shard["a"].released.wait(), LONG)
    shard["b"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "b"


@in_virtual_time
async def test_requests_in_hand_of_a_lost_replica_are_sent_elsewhere_at_once() -> None:
    shard = Shard("ab")
    asked = await shard.ask_first("a")
    shard.searcher.update("b", lost="a")
    assert await asyncio.wait_for(asked, LONG) == "b"
    assert shard.count("retries_total", result="won") == 1
    assert shard.idle()


@in_virtual_time
async def test_a_replica_that_leaves_ends_its_requests_and_gets_no_new_ones() -> None:
    shard = Shard("ab")
    asked = await shard.ask_first("a")
    shard.searcher.update("b")
    assert {await shard.ask() for _ in range(10)} == {"b"}
    assert not asked.done()
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    assert shard.count("retries_total", result="sent") == 0


async def test_a_request_that_fails_on_a_replica_that_leaves_is_sent_elsewhere() -> None:
    shard = Shard("ab")
    fake = shard["a"]

    async def die(*_: object) -> None:
        fake.hanging.set()
        await fake.go_on.wait()
        raise DEAD

    fake.retrieve = die  # type: ignore[method-assign, assignment]
    asked = await shard.ask_first("a")
    shard.searcher.update("b")
    fake.go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "b"


@in_virtual_time
async def test_a_replica_that_leaves_and_returns_still_counts_its_requests() -> None:
    shard = Shard("ab")
    asked = await shard.ask_first("a")
    before = shard.known["a"]
    shard.searcher.update("b")
    shard.searcher.update("ab")
    assert shard.known["a"] is before
    assert before.outstanding == 1
    shard["a"].go_on.set()
    await asyncio.wait_for(asked, LONG)
    assert shard.idle()
    shard.searcher.update("b")
    shard.searcher.update("ab")
    assert shard.known["a"] is not before, "without anything in hand it may be another process"


@in_virtual_time
async def test_when_a_replica_is_ejected_all_that_it_had_in_hand_is_sent_elsewhere() -> None:
    shard = Shard("ab")
    asked = [await shard.ask_first("a") for _ in range(5)]
    shard.clock.advance(1.0)  # more than the patience: silence counts against it
    for task in asked[: OUTLIERS.consecutive_failures]:
        task.cancel()
    left = asked[OUTLIERS.consecutive_failures :]
    assert await asyncio.wait_for(asyncio.gather(*left), LONG) == ["b"] * 3
    assert shard.known["a"].record.state is EjectionState.EJECTED
    assert shard.count("ejections_total", replica="a") == 1
    assert shard.idle()


@in_virtual_time
async def test_an_impatient_client_gets_no_replica_ejected() -> None:
    shard = Shard("ab")
    for _ in range(10):
        task = await shard.ask_first("a")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert shard.known["a"].record.state is EjectionState.ACTIVE
    assert shard.idle()


@pytest.mark.parametrize(
    ("after", "state"),
    [(0, EjectionState.EJECTED), (5, EjectionState.EJECTED), (6, EjectionState.ACTIVE)],
)
@in_virtual_time
async def test_a_replica_that_waits_for_a_write_is_not_blamed_for_its_silence(
    after: int, state: EjectionState
) -> None:
    """It has write 5. Callers name writes as they like."""
    shard = Shard("ab")
    shard.searcher.update("ab", sequences={"a": 5, "b": 5})
    tasks = [await shard.ask_first("a", after) for _ in range(OUTLIERS.consecutive_failures)]
    shard.clock.advance(1.0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert shard.known["a"].record.state is state
    assert shard.idle()


@in_virtual_time
async def test_a_request_that_waits_for_a_write_is_hedged_only_when_it_is_overdue() -> None:
    late = replace(HEDGING, min_delay=0.001, overdue_factor=1e6)
    shard = Shard("ab", late)
    await shard.ask()
    asked = await shard.ask_first("a", after=6)
    other = await shard.ask_first("a")
    assert await asyncio.wait_for(other, LONG) == "b"
    assert not asked.done()
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    overdue = Shard("ab", HEDGING)
    await overdue.ask()
    assert await asyncio.wait_for(await overdue.ask_first("a", after=6), LONG) == "b"


@in_virtual_time
async def test_how_long_a_write_was_waited_for_is_no_measure_of_a_replica() -> None:
    shard = Shard("ab")
    asked = await shard.ask_first("a", after=6)
    shard.clock.advance(50.0)
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    assert shard.known["a"].latency.samples == 0
    assert shard.searcher._router.delays.delay_of("retrieve", 0).estimate() is None


async def test_a_replica_that_has_got_so_far_is_asked_for_a_write_and_others_for_anything() -> None:
    shard = Shard("ab")
    shard.searcher.update("ab", sequences={"a": 5, "b": 6})
    assert {await shard.ask(after=6) for _ in range(20)} == {"b"}
    assert {await shard.ask(after=5) for _ in range(50)} == {"a", "b"}
    assert {await shard.ask(after=7) for _ in range(50)} == {"a", "b"}, "nobody is known to have it"


async def test_a_replica_that_lags_is_named_once_with_how_far_and_again_when_it_does_not() -> None:
    shard = Shard("ab")
    shard.searcher.update("ab", sequences={"a": 5, "b": 9})
    with capture_logs() as logs:
        shard.clock.advance(SETTLED_SECONDS)
        for _ in range(20):  # though nothing that is known of the replicas changes
            assert await shard.ask() == "b"
        shard.searcher.update("ab", sequences={"a": 9, "b": 9})
    assert [(each["event"], each["address"], each.get("writes")) for each in logs] == [
        ("replica lags", "a", 4),
        ("replica no longer lags", "a", None),
    ]
    assert shard.series("a", "replica_lag_writes") == 0


async def test_cancelling_ends_everything_that_was_begun() -> None:
    shard = Shard("ab", HEDGING)
    await shard.ask()
    shard["b"].hangs = True
    asked = await shard.ask_first("a")
    await asyncio.wait_for(shard["b"].hanging.wait(), LONG)
    asked.cancel()
    for name in "ab":
        await asyncio.wait_for(shard[name].released.wait(), LONG)
    assert shard.idle()


async def test_a_replica_that_is_gone_gets_no_series_from_its_last_requests() -> None:
    shard = Shard("abc")
    asked = [await shard.ask_first("a") for _ in range(OUTLIERS.consecutive_failures)]
    shard.searcher.update("bc")
    shard.clock.advance(1.0)  # silence counts against it
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    assert all(
        shard.series("a", name) is None for name in ("replica_outstanding", "ejections_total")
    )


@in_virtual_time
async def test_a_shard_that_is_not_served_any_more_leaves_no_series_behind() -> None:
    """A question that has begun with it goes on, and may have the names of the next one's."""
    shard = Shard("ab")
    asked = await shard.ask_first("a")
    shard.searcher.retire()
    shard["a"].go_on.set()
    assert await asyncio.wait_for(asked, LONG) == "a"
    shard["b"].hangs = False
    assert {await shard.ask() for _ in range(20)} == set("ab")
    assert all(shard.series(name, "replica_outstanding") is None for name in "ab")


async def test_saying_again_and_again_that_there_is_no_replica_takes_no_memory() -> None:
    """An error that is raised twice remembers both stacks."""
    shard = Shard("")
    depths = []
    for _ in range(5):
        with pytest.raises(UnavailableError) as caught:
            await shard.ask()
        depths.append(len(list(traceback.walk_tb(caught.value.__traceback__))))
    assert len(set(depths)) == 1


async def test_series_of_replicas_that_are_gone_are_dropped() -> None:
    shard = Shard("ab")
    for _ in range(20):
        await shard.ask()
    assert shard.series("a", "replica_outstanding") == 0
    shard.searcher.update("b")
    assert shard.series("a", "replica_outstanding") is None


behaviours = st.sampled_from(["answers", "hangs", "fails", "refuses", "is wrong"])


def behave(fake: FakeSearcher, how: str) -> None:
    fake.hangs = how == "hangs"
    errors = {"fails": UnavailableError(""), "refuses": OverloadedError("")}
    fake.fails = IdentityError("") if how == "is wrong" else errors.get(how)


@given(
    st.lists(behaviours, min_size=4, max_size=4),
    st.lists(
        st.sampled_from(["ask", "ask", "cancel", "leave", "lose", "find", "turn"]), max_size=30
    ),
    st.integers(0, 2**32),
)
def test_in_any_history_each_attempt_ends_once_and_load_is_bounded(
    hows: list[str], events: Iterable[str], seed: int
) -> None:
    chance = random.Random(seed)

    async def live() -> None:
        shard = Shard("abcd", HEDGING)
        await shard.ask()
        for fake, how in zip(shard.fakes.values(), hows, strict=True):
            behave(fake, how)
        asked: list[asyncio.Task[str]] = []
        for event in events:
            if event == "ask":
                asked.append(asyncio.create_task(shard.ask()))
            elif event == "cancel" and asked:
                chance.choice(asked).cancel()
            elif event in ("leave", "lose", "find"):
                there = chance.sample("abcd", chance.randint(1, 4))
                lost = set("abcd") - set(there) if event == "lose" else ()
                shard.searcher.update(there, lost=lost)
            elif event == "turn":
                shard.clock.advance(chance.random())
                for _ in range(3):
                    await turn()
        for fake in shard.fakes.values():
            fake.go_on.set()
        await asyncio.gather(*asked, return_exceptions=True)
        assert shard.idle()
        assert not shard.searcher._pool._running
        assert sum(fake.calls for fake in shard.fakes.values()) <= 3 * len(asked) + 1

    asyncio.run(live())


async def test_passages_are_listed_on_a_replica_of_a_newer_version() -> None:
    """During a rolling update an older replica still answers questions: it is not ejected."""
    shard = Shard("ab")
    shard["a"].passages.fails = NotServedError("of an older version")
    shard["b"].passages.put("p")
    deadline = Deadline.after(60, shard.clock)
    for _ in range(20):
        page = await shard.searcher.passages.fetch(PassageListing(limit=9), deadline)
        assert [each.id for each in page.passages] == ["p"]
    assert state_of("a", shard) is EjectionState.ACTIVE
    shard["b"].passages.fails = shard["a"].passages.fails
    with pytest.raises(NotServedError, match="older version"):
        await shard.searcher.passages.fetch(CountRequest(), deadline)
    assert shard.idle()


@in_virtual_time
async def test_passages_come_from_a_replica_that_has_the_required_write() -> None:
    shard = Shard("ab")
    shard.searcher.update("ab", sequences={"a": 3, "b": 4}, log_id="log")
    deadline = Deadline.after(60, shard.clock)
    for _ in range(20):
        await shard.searcher.passages.fetch(PassageLookup(ids=["p"], after=4), deadline)
    assert (len(shard["a"].passages.requests), len(shard["b"].passages.requests)) == (0, 20)


@in_virtual_time
async def test_a_slow_listing_neither_hedges_nor_ejects() -> None:
    """Pages differ in size: a long one says nothing about its replica."""
    shard = Shard("ab", hedge=HEDGING)
    deadline = Deadline.after(600, shard.clock)
    listing = shard.searcher.passages
    for _ in range(30):
        await listing.fetch(PassageListing(limit=9), deadline)
    for name in "ab":
        shard[name].passages.hangs = asyncio.Event()
    calls = [asyncio.create_task(listing.fetch(PassageListing(limit=9), deadline)) for _ in "1234"]
    await turn()
    shard.clock.now += 0.4
    for name in "ab":
        hanging = shard[name].passages.hangs
        assert hanging is not None
        hanging.set()
    await asyncio.gather(*calls)
    assert shard.count("hedges_total", result="sent") == 0
    assert {state_of(name, shard) for name in "ab"} == {EjectionState.ACTIVE}
