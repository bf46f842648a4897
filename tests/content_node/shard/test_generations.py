"""A node serves the newest generation, and those that questions may still come back to."""

import threading
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
from manual_clock import ManualClock

from winnow.content_node.shard import ShardView, StoredSegment, open_shard, view_of
from winnow.content_node.shard.generations import RecentGenerations
from winnow.deadline import Deadline
from winnow.errors import GenerationGoneError

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "shard-format-2"


def shard(name: str) -> ShardView:
    """A view of a separate shard whose generation begins with `name`."""
    opened = open_shard(GOLDEN, ef=64)
    entry = opened.manifest.files["passages.sqlite"]
    other = entry.model_copy(update={"sha256": name.ljust(16, "0") + entry.sha256[16:]})
    files = {**opened.manifest.files, "passages.sqlite": other}
    manifest = opened.manifest.model_copy(update={"files": files})
    return view_of(replace(opened, manifest=manifest, generation=manifest.generation))


def name_of(view: ShardView) -> str:
    return view.generation


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def after(clock: ManualClock, seconds: float) -> Deadline:
    return Deadline.after(seconds, clock)


def test_retrieval_uses_the_newest_generation_and_reading_the_generation_of_the_hits(
    clock: ManualClock,
) -> None:
    first, second = shard("a"), shard("b")
    generations = RecentGenerations(first, clock)
    assert generations.lease_newest(after(clock, 1)) is first
    generations.set_newest(second)
    assert generations.newest is second
    assert generations.lease_newest(after(clock, 1)) is second
    assert generations.lease(name_of(first), after(clock, 1)) is first
    assert generations.lease(name_of(second), after(clock, 1)) is second
    assert generations.lease("", after(clock, 1)) is second


def test_a_generation_is_kept_for_the_longest_question_that_retrieved_from_it(
    clock: ManualClock,
) -> None:
    first = shard("a")
    generations = RecentGenerations(first, clock)
    generations.lease_newest(after(clock, 2.0))
    generations.lease_newest(after(clock, 0.1))
    generations.set_newest(shard("b"))
    clock.advance(7.9)  # a retrieval has a share of its question's time
    assert generations.lease(name_of(first), after(clock, 0.05)) is first
    clock.advance(0.1)
    with pytest.raises(GenerationGoneError, match=r"serves \w+: retrieve again"):
        generations.lease(name_of(first), after(clock, 1))


def test_reading_keeps_a_generation(clock: ManualClock) -> None:
    first = shard("a")
    generations = RecentGenerations(first, clock)
    generations.lease_newest(after(clock, 1))
    generations.set_newest(shard("b"))
    for _ in range(5):
        clock.advance(3)
        assert generations.lease(name_of(first), after(clock, 3.1)) is first


def test_no_deadline_keeps_a_generation_for_ever(clock: ManualClock) -> None:
    generations = RecentGenerations(shard("a"), clock)
    generations.lease_newest(after(clock, 1e9))
    generations.set_newest(shard("b"))
    clock.advance(61)
    with pytest.raises(GenerationGoneError):
        generations.lease(name_of(shard("a")), after(clock, 1))


def test_an_unused_generation_is_dropped_at_once(clock: ManualClock) -> None:
    generations = RecentGenerations(shard("a"), clock)
    generations.set_newest(shard("b"))
    with pytest.raises(GenerationGoneError):
        generations.lease(name_of(shard("a")), after(clock, 1))


def test_the_same_generation_served_again_takes_the_place_of_its_like(clock: ManualClock) -> None:
    generations = RecentGenerations(shard("a"), clock)
    generations.lease_newest(after(clock, 1))
    again = shard("a")
    generations.set_newest(again)
    assert generations.lease(name_of(again), after(clock, 1)) is again


def test_a_newer_view_of_the_same_generation_stands_for_all_of_them(clock: ManualClock) -> None:
    first = shard("a")
    generations = RecentGenerations(first, clock)
    generations.lease_newest(after(clock, 1))
    newer = replace(first, sequence=1)
    generations.set_newest(newer)
    assert generations.lease(name_of(first), after(clock, 1)) is newer
    generations.set_newest(shard("b"))  # the question that began before is still there
    assert generations.lease(name_of(first), after(clock, 0.1)) is newer
    clock.advance(5)
    with pytest.raises(GenerationGoneError):
        generations.lease(name_of(first), after(clock, 1))


def test_with_a_log_the_newest_view_stands_for_a_missing_generation(
    clock: ManualClock,
) -> None:
    live = replace(shard("a"), log_id="log")
    assert RecentGenerations(live, clock).lease("elsewhere", after(clock, 1)) is live


def test_a_generation_without_readers_is_closed(clock: ManualClock) -> None:
    first = shard("a")
    generations = RecentGenerations(first, clock)
    [placed] = first.segments
    assert isinstance(placed.segment, StoredSegment)
    store = weakref.ref(placed.segment.store)
    opened = placed.segment.store._connections
    del placed
    generations.lease_newest(after(clock, 1))
    generations.set_newest(shard("b"))
    del first
    generations.drop_expired()
    assert store() is not None
    clock.advance(60)
    generations.drop_expired()
    assert store() is None
    assert opened
    for connection in opened:
        with pytest.raises(Exception, match="closed"):
            connection.execute("SELECT 1")


def test_a_reading_thread_keeps_its_generation(clock: ManualClock) -> None:
    generations = RecentGenerations(shard("a"), clock)
    begun, go_on = threading.Event(), threading.Event()
    found: list[str] = []

    def work(own: ShardView) -> None:
        begun.set()
        assert go_on.wait(60)
        found.extend(name for name, _ in own.ids_and_sequences([0, 1, 2]))

    thread = threading.Thread(target=work, args=(generations.lease_newest(after(clock, 1)),))
    thread.start()
    assert begun.wait(60)
    generations.set_newest(shard("b"))
    clock.advance(100)
    generations.drop_expired()
    go_on.set()
    thread.join(60)
    assert found == ["a", "b", "c"]


def test_dropped_generations_are_reported_once(clock: ManualClock) -> None:
    """What they held in memory can be given back then."""
    told: list[float] = []
    generations = RecentGenerations(shard("a"), clock, lambda: told.append(clock()))
    generations.lease_newest(after(clock, 1.0))
    generations.set_newest(shard("b"))
    generations.lease_newest(after(clock, 1.0))
    generations.set_newest(shard("c"))
    generations.drop_expired()
    assert told == []
    clock.advance(10.0)
    generations.drop_expired()
    generations.drop_expired()
    assert told == [clock()]
