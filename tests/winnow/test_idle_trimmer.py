"""Memory that is given back once a flood of calls has ended."""

import asyncio
from collections.abc import Callable

import needs
import pytest
from tenacious import happens, turn

from winnow.heap import IdleTrimmer, trim_function

FLOOD = 10


class Call:
    """The context of a call."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[object], None]] = []

    def add_done_callback(self, callback: Callable[[object], None]) -> None:
        self.callbacks.append(callback)

    def end(self) -> None:
        for callback in self.callbacks:
            callback(self)


class Shore:
    """Counts how often memory was given back."""

    def __init__(self) -> None:
        self.trimmed = 0
        self.ebb = IdleTrimmer(self.trim, FLOOD, pause=0.0)

    def trim(self) -> None:
        self.trimmed += 1

    def begin(self, calls: int) -> list[Call]:
        begun = [Call() for _ in range(calls)]
        for call in begun:
            self.ebb.count_call(call)
        return begun


def end(calls: list[Call]) -> None:
    for call in calls:
        call.end()


async def settled() -> None:
    """Until what was to be done is done: the executor's threads come in turn."""
    for _ in range(3):
        await turn()
    await asyncio.to_thread(lambda: None)


async def test_memory_is_given_back_once_after_each_flood() -> None:
    shore = Shore()
    for flood in (1, 2):
        end(shore.begin(3 * FLOOD))
        await happens(lambda: shore.trimmed == flood)  # noqa: B023 (at once)
    await settled()
    assert shore.trimmed == 2


async def test_a_flood_that_ends_little_by_little_is_one_too() -> None:
    shore = Shore()
    calls = shore.begin(FLOOD)
    end(calls[1:])
    await settled()
    assert shore.trimmed == 0
    end(calls[:1])
    await happens(lambda: shore.trimmed == 1)


async def test_calls_one_after_the_other_are_no_flood() -> None:
    shore = Shore()
    for _ in range(5 * FLOOD):
        end(shore.begin(1))
    await settled()
    assert shore.trimmed == 0


async def test_where_nothing_can_be_given_back_nothing_happens() -> None:
    ebb = IdleTrimmer(None, FLOOD, pause=0.0)
    calls = [Call() for _ in range(2 * FLOOD)]
    for call in calls:
        ebb.count_call(call)
    end(calls)
    await settled()


def test_the_heap_of_this_process_can_be_trimmed() -> None:
    trim = trim_function()
    if trim is None:
        pytest.skip(needs.GLIBC)
    trim()
