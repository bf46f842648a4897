"""The threads that read: shared, bounded, freed when nobody waits."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator

import needs
import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG, turn

from winnow.content_node.metrics import NodeMetrics
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, StoppedError
from winnow.inference.stop_signal import StopSignal
from winnow.reading.pool import ReaderPool


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def pool(registry: CollectorRegistry) -> Iterator[ReaderPool]:
    made = ReaderPool(threads=4, per_request=2, metrics=NodeMetrics(registry))
    yield made
    made.close()


async def test_results_come_in_the_order_of_their_items(pool: ReaderPool) -> None:
    done = await pool.map(lambda n, _: n * n, list(range(50)), Deadline.after(LONG))
    assert done.results == [n * n for n in range(50)]
    assert done.queue_seconds >= 0


async def test_a_request_uses_no_more_threads_than_it_may(pool: ReaderPool) -> None:
    seen: set[str] = set()
    both = threading.Barrier(2, timeout=LONG)

    def work(number: int, _: StopSignal) -> None:
        seen.add(threading.current_thread().name)
        if number < 2:
            both.wait()  # two threads must be here at once

    await pool.map(work, list(range(40)), Deadline.after(LONG))
    assert len(seen) == 2


@pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX)
@pytest.mark.parametrize(("nice", "further"), [(0, 0), (3, 3), (19, 19)])
async def test_reading_gives_way_to_brief_work(nice: int, further: int) -> None:
    def priority(*_: object) -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    pool = ReaderPool(1, 1, NodeMetrics(CollectorRegistry()), nice=nice)
    try:
        [reading] = (await pool.map(priority, [None], Deadline.after(LONG))).results
        [brief] = (await pool.call(priority, Deadline.after(LONG))).results
    finally:
        pool.close()
    assert brief == priority()
    assert reading == min(brief + further, 19)


async def test_each_finished_item_is_reported_on_the_event_loop(pool: ReaderPool) -> None:
    told: list[str] = []

    def each() -> None:
        told.append(threading.current_thread().name)

    await pool.map(lambda n, _: n, list(range(9)), Deadline.after(LONG), each)
    assert told == [threading.current_thread().name] * 9


async def test_nothing_to_do_is_done(pool: ReaderPool) -> None:
    assert (await pool.map(lambda n, _: n, [], Deadline.after(LONG))).results == []


class Endless:
    """Work that ends only when it is told to."""

    def __init__(self, threads: int) -> None:
        self.begun = threading.Semaphore(0)
        self.threads = threads

    def __call__(self, number: int, stop: StopSignal) -> None:
        ended = threading.Event()
        with stop.on_stop(ended.set):
            self.begun.release()
            assert ended.wait(60)
        raise StoppedError("nobody waits")

    def wait(self) -> None:
        """Waits until every thread is at it."""
        for _ in range(self.threads):
            assert self.begun.acquire(timeout=60)


async def all_free(pool: ReaderPool) -> None:
    """Returns once every thread of the pool is free."""
    everybody = threading.Barrier(4, timeout=60)

    def meet(_number: int, _stop: StopSignal) -> None:
        everybody.wait()

    await asyncio.gather(*(pool.map(meet, [1, 2], Deadline.after(60)) for _ in range(2)))


async def test_cancelling_ends_the_items_in_hand(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    work = Endless(2)
    task = asyncio.create_task(pool.map(work, list(range(100)), Deadline.after(60)))
    await asyncio.to_thread(work.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await all_free(pool)
    assert registry.get_sample_value("winnow_node_reads_stopped_total") == 100
    assert registry.get_sample_value("winnow_node_runs_ended_total") == 2


async def test_readers_are_idle_until_they_are_asked_for(pool: ReaderPool) -> None:
    assert pool.idle_threads == 2  # of four; one request gets no more
    work = Endless(3)
    tasks = [
        asyncio.create_task(pool.map(work, items, Deadline.after(60))) for items in ([1], [2, 3])
    ]
    await asyncio.to_thread(work.wait)
    assert pool.idle_threads == 1
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert pool.idle_threads == 2


async def test_at_the_deadline_the_caller_is_told_and_the_items_in_hand_end(
    pool: ReaderPool,
) -> None:
    with pytest.raises(DeadlineExceededError, match="before any of 100 passages was read"):
        await pool.map(Endless(2), list(range(100)), Deadline.after(0.01))
    await all_free(pool)


async def test_work_that_cannot_be_stopped_delays_no_caller_past_the_deadline(
    pool: ReaderPool,
) -> None:
    go_on = threading.Event()
    with pytest.raises(DeadlineExceededError):
        await pool.call(lambda _: go_on.wait(), Deadline.after(0.01))
    go_on.set()
    await all_free(pool)


async def test_clients_take_turns_passage_by_passage_for_any_number_of_waiting_passages() -> None:
    pool = ReaderPool(1, 1, NodeMetrics(CollectorRegistry()))
    go_on, begun, order = threading.Event(), threading.Event(), list[str]()

    def greedy(number: int, _: StopSignal) -> None:
        begun.set()
        assert go_on.wait(60)
        order.append("greedy")

    def polite(number: int, _: StopSignal) -> None:
        order.append("polite")

    later = Deadline.after(60)
    try:
        tasks = [
            asyncio.create_task(pool.map(greedy, list(range(20)), later, client="greedy"))
            for _ in range(5)
        ]
        await asyncio.to_thread(begun.wait, 60)
        tasks.append(asyncio.create_task(pool.map(polite, [1, 2, 3], later, client="polite")))
        await turn()
        go_on.set()
        await asyncio.gather(*tasks)
    finally:
        pool.close()
    assert [place for place, who in enumerate(order) if who == "polite"][-1] <= 6
    assert len(order) == 103


async def test_brief_work_goes_ahead_of_reading(pool: ReaderPool) -> None:
    work = Endless(4)
    reads = [asyncio.create_task(pool.map(work, [1, 2, 3], Deadline.after(60))) for _ in range(3)]
    await asyncio.to_thread(work.wait)
    assert (await pool.call(lambda _: 7, Deadline.after(60))).results == [7]
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)


async def test_late_brief_work_never_runs(pool: ReaderPool) -> None:
    ran = threading.Event()
    with pytest.raises(DeadlineExceededError):
        await pool.call(lambda _: ran.set(), Deadline.after(-1))
    await all_free(pool)
    assert not ran.is_set()


async def test_an_expired_deadline_stops_between_items(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    clock = ManualClock()

    def work(number: int, _: StopSignal) -> int:
        clock.advance(2 * LONG)
        return number

    done = await pool.map(work, list(range(100)), Deadline.after(LONG, clock))
    assert done.results == list(range(len(done.results)))
    assert 1 <= len(done.results) <= 2
    assert done.unfinished == 100 - len(done.results)
    assert registry.get_sample_value("winnow_node_reads_stopped_total") == done.unfinished


def once(happened: Callable[[], None]) -> Deadline:
    """A deadline that passes soon after something happened, by the clock of the event loop."""
    caller = threading.get_ident()

    def clock() -> float:
        if threading.get_ident() == caller:
            happened()
        return 0.0

    return Deadline(0.01, clock)


async def test_readings_finished_by_the_deadline_are_returned_in_order(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    endless = Endless(2)

    def work(number: int, stop: StopSignal) -> int:
        if number in (1, 4):
            endless(number, stop)
        return number

    told: list[None] = []
    done = await pool.map(work, [0, 1, 2, 3, 4], once(endless.wait), lambda: told.append(None))
    await all_free(pool)
    assert (done.results, done.unfinished) == ([0, 2, 3], 2)
    assert len(told) == 3
    assert registry.get_sample_value("winnow_node_reads_stopped_total") == 2
    assert registry.get_sample_value("winnow_node_runs_ended_total") == 2


async def test_results_after_the_end_are_ignored(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    go_on, begun = threading.Event(), threading.Barrier(3, timeout=60)

    def work(number: int, _: StopSignal) -> int:
        if number:
            meet()
            go_on.wait(60)
        return number

    def meet() -> None:
        begun.wait()

    told: list[None] = []
    done = await pool.map(work, [0, 1, 2], once(meet), lambda: told.append(None))
    go_on.set()
    await all_free(pool)
    assert (done.results, done.unfinished) == ([0], 2)
    assert len(told) == 1
    assert registry.get_sample_value("winnow_node_reads_stopped_total") == 2


async def test_an_error_of_an_item_fails_only_its_request(pool: ReaderPool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.map(lambda n, _: 1 // n, [1, 0, 1], Deadline.after(LONG))
    assert (await pool.call(lambda _: 7, Deadline.after(LONG))).results == [7]


async def test_busy_threads_are_counted_while_they_work(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    busy = []

    def work(_item: int, _stop: StopSignal) -> None:
        busy.append(registry.get_sample_value("winnow_node_reader_threads_busy"))

    await pool.map(work, [1], Deadline.after(LONG))
    assert busy == [1]
    assert registry.get_sample_value("winnow_node_reader_threads_busy") == 0
    assert registry.get_sample_value("winnow_node_reader_threads") == 4
