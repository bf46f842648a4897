"""Memory that was freed goes back to the system: in a thread, and once for many times."""

import asyncio
import ctypes
import gc
import threading
import weakref
from typing import Any

import pytest
from tenacious import happens

from winnow.heap import HeapTrimmer, bound_arenas, collect_closed, trim_heap


class Library:
    """A C library that notes how its allocator was set up."""

    def __init__(self) -> None:
        self.options: list[tuple[int, int]] = []

    def mallopt(self, option: int, value: int) -> int:
        self.options.append((option, value))
        return 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: made)
    return made


async def test_memory_is_given_back_once_in_another_thread() -> None:
    threads: list[int] = []
    trimmer = HeapTrimmer(lambda: threads.append(threading.get_ident()), pause=0.0)
    for _ in range(3):
        trimmer.schedule_trim()
    await happens(lambda: bool(threads))
    await asyncio.to_thread(lambda: None)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


async def test_memory_that_is_freed_later_is_given_back_too() -> None:
    trimmed: list[int] = []
    trimmer = HeapTrimmer(lambda: trimmed.append(1), pause=0.0)
    for times in (1, 2):
        trimmer.schedule_trim()
        await happens(lambda: len(trimmed) == times)  # noqa: B023 (at once)


async def test_where_nothing_can_be_trimmed_nothing_is_planned() -> None:
    HeapTrimmer(None, pause=0.0).schedule_trim()


def test_threads_share_a_few_arenas(library: Library) -> None:
    bound_arenas()
    assert library.options == [(-8, 2)]


def test_what_an_operator_set_for_arenas_stays(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "16")
    bound_arenas()
    assert library.options == []


@pytest.mark.parametrize("act", [bound_arenas, trim_heap])
def test_another_c_library_is_left_alone(act: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    act()


def test_closed_objects_in_cycles_are_freed_although_they_are_of_the_start() -> None:
    """The garbage collector ignores the objects that a server has frozen."""

    class Shard:
        def __init__(self) -> None:
            self.itself = self

    shard = Shard()
    freed = weakref.ref(shard)
    gc.freeze()
    try:
        del shard
        gc.collect()
        assert freed() is not None
        collect_closed()
        assert freed() is None
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
