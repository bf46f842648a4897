"""Random requests: none gets an internal error, and none leaves anything behind."""

import asyncio
from collections import Counter
from random import Random

import pytest
from http_front import HttpFront
from structlog.testing import capture_logs
from tenacious import LONG, happens
from text_reading import reading_core

from bench.hostile.attacks.http import status_of
from bench.hostile.attacks.target import Target
from bench.hostile.requests import random_request
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.reading import read_operations
from winnow.stateless.reading.servicer import ReadMessages

_REQUESTS, _AT_ONCE = 300, 32
_TEXTS_AT_ONCE = 8
"""Fewer, because on a busy machine many texts at once would take longer than the patience."""
_PATIENCE = 2.0
"""Seconds for the reply to a request that may be half there."""


async def outcomes_of_requests(front: HttpFront, seed: int, *, texts: bool) -> Counter[str]:
    """Sends random requests; returns the number of each status. None may fail inside."""
    chance, places = Random(seed), asyncio.Semaphore(_TEXTS_AT_ONCE if texts else _AT_ONCE)

    async def ask(target: Target) -> str:
        async with places:
            return await status_of(target, [random_request(chance, texts=texts)], _PATIENCE)

    with capture_logs() as logged:
        async with front.serving():
            target = Target(http=front.address, seed=seed)
            outcomes = Counter(await asyncio.gather(*(ask(target) for _ in range(_REQUESTS))))
            await happens(lambda: not front.sample("winnow_http_connections"), LONG)
    assert not [line for line in logged if line["log_level"] == "error"]
    failed = [status for status in outcomes if status.startswith("5") and status != "504"]
    assert not failed, outcomes  # 504: a deadline that the request set
    return outcomes


@pytest.mark.parametrize("seed", [1, 2])
async def test_nonsense_is_refused_and_leaves_nothing_behind(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes = await outcomes_of_requests(HttpFront(), seed, texts=False)
    assert outcomes["400"] > 25
    assert not caplog.records


@pytest.mark.parametrize("seed", [1, 2])
async def test_nonsense_as_texts_or_of_agents_is_served_or_refused(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """On the paths that read texts and on `/mcp`; no text stays in progress."""
    front, threads = HttpFront(), FairThreads(1, "texts")
    front.stack.callback(threads.close)
    with reading_core() as made:
        messages = ReadMessages(made.core, threads)
        front.add(read_operations(messages, OperationLimits(LONG, made.admission.refusal)))
        outcomes = await outcomes_of_requests(front, seed, texts=True)
        await happens(lambda: not made.admission.in_flight, LONG)
    assert outcomes["200"] > 5
    assert outcomes["400"] > 25
    assert not caplog.records
