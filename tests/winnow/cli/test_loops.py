"""Load is offered at its rate or concurrency, and ends."""

import asyncio
from types import SimpleNamespace

import pytest
from manual_clock import ManualClock

from winnow.cli.loadtest import loops
from winnow.cli.loadtest.cli import client_counts
from winnow.cli.loadtest.loops import run_closed_loop, run_open_loop
from winnow.errors import OverloadedError


async def test_a_closed_loop_never_has_more_questions_open_than_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(loops, "time", SimpleNamespace(perf_counter=clock))
    open_now = most = 0

    async def ask(_question: str) -> object:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0)
        clock.advance(0.01)
        open_now -= 1
        return None

    load = await run_closed_loop(ask, ["a", "b"], clients=3, seconds=1.0)
    assert most <= 3
    assert load.answered > 0
    assert load.errors == {}


async def test_an_open_loop_asks_at_its_rate_whatever_happens() -> None:
    async def ask(_question: str) -> object:
        raise OverloadedError("RESOURCE_EXHAUSTED: full")

    load = await run_open_loop(ask, ["a"], rate=200, seconds=0.1)
    assert load.errors == {"RESOURCE_EXHAUSTED": 20}
    assert load.said == {"RESOURCE_EXHAUSTED": "RESOURCE_EXHAUSTED: full"}
    assert load.answered == 0


def test_closed_loops_double_up_to_the_number_of_clients() -> None:
    assert list(client_counts(8)) == [1, 2, 4, 8]
    assert list(client_counts(5)) == [1, 2, 4, 5]
    assert list(client_counts(0)) == []


async def test_an_open_loop_of_less_than_one_question_asks_one() -> None:
    async def ask(_question: str) -> object:
        return None

    assert (await run_open_loop(ask, ["a"], rate=0.1, seconds=0.1)).answered == 1


async def test_each_client_of_a_closed_loop_asks_at_least_one() -> None:
    async def ask(_question: str) -> object:
        return None

    assert (await run_closed_loop(ask, ["a"], clients=2, seconds=0.0)).answered == 2
