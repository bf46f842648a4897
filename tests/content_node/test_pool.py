"""The threads that read: shared, bounded, freed when nobody waits."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from content_node.reader.pool import ReaderPool
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError
from winnow.telemetry.metrics import NodeMetrics


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def pool(registry: CollectorRegistry) -> Iterator[ReaderPool]:
    made = ReaderPool(threads=4, per_request=2, metrics=NodeMetrics(registry))
    yield made
    made.close()


async def test_results_come_in_the_order_of_their_items(pool: ReaderPool) -> None:
    done = await pool.map(lambda n: n * n, list(range(50)), Deadline.after(10))
    assert done.results == [n * n for n in range(50)]
    assert done.queued >= 0


async def test_a_request_uses_no_more_threads_than_it_may(pool: ReaderPool) -> None:
    seen: set[str] = set()
    both = threading.Barrier(2, timeout=10)

    def work(number: int) -> None:
        seen.add(threading.current_thread().name)
        if number < 2:
            both.wait()  # two threads must be here at once

    await pool.map(work, list(range(40)), Deadline.after(10))
    assert len(seen) == 2


async def test_cancelling_frees_the_threads_after_the_item_in_hand(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    done: list[int] = []

    def work(number: int) -> None:
        begun.set()
        go_on.wait(10)
        done.append(number)

    task = asyncio.create_task(pool.map(work, list(range(100)), Deadline.after(60)))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    # the pool is free again: four requests of two threads each can run
    await asyncio.gather(*(pool.map(str, [1, 2], Deadline.after(10)) for _ in range(4)))
    assert len(done) <= 2
    assert registry.get_sample_value("winnow_node_reads_stopped_total") >= 98  # type: ignore[operator]


async def test_an_expired_deadline_stops_between_items(pool: ReaderPool) -> None:
    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()
    done: list[int] = []

    def work(number: int) -> None:
        done.append(number)
        clock.now = 2.0

    with pytest.raises(DeadlineExceededError, match="passages unread"):
        await pool.map(work, list(range(100)), Deadline.after(1.0, clock))
    assert 1 <= len(done) <= 2


async def test_work_that_fails_fails_the_request_and_nothing_else(pool: ReaderPool) -> None:
    with pytest.raises(ZeroDivisionError):
        await pool.map(lambda n: 1 // n, [1, 0, 1], Deadline.after(10))
    assert (await pool.call(lambda: 7, Deadline.after(10))).results == [7]


async def test_busy_threads_are_counted_while_they_work(
    pool: ReaderPool, registry: CollectorRegistry
) -> None:
    busy = []

    def work(_: int) -> None:
        busy.append(registry.get_sample_value("winnow_node_reader_threads_busy"))

    await pool.map(work, [1], Deadline.after(10))
    assert busy == [1]
    assert registry.get_sample_value("winnow_node_reader_threads_busy") == 0
    assert registry.get_sample_value("winnow_node_reader_threads") == 4
