"""Random requests: none gets an internal error."""

import asyncio
from collections import Counter
from random import Random

import pytest
from http_front import LONG, HttpFront
from structlog.testing import capture_logs
from tenacious import happens

from bench.hostile.attacks.http import status_of
from bench.hostile.attacks.target import Target
from bench.hostile.requests import random_request

_REQUESTS, _AT_ONCE = 600, 32
_PATIENCE = 2.0
"""Seconds for the reply to a request that may be half there."""


@pytest.mark.parametrize("seed", [1, 2])
async def test_nonsense_is_refused_and_leaves_nothing_behind(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance, front, places = Random(seed), HttpFront(), asyncio.Semaphore(_AT_ONCE)

    async def ask(target: Target) -> str:
        async with places:
            return await status_of(target, [random_request(chance)], _PATIENCE)

    with capture_logs() as logged:
        async with front.serving():
            target = Target(http=front.address, seed=seed)
            outcomes = Counter(await asyncio.gather(*(ask(target) for _ in range(_REQUESTS))))
            await happens(lambda: not front.sample("winnow_http_connections"), LONG)
    assert outcomes["400"] > 50
    assert outcomes["500"] == 0, outcomes
    assert not [line for line in logged if line["log_level"] == "error"]
    assert not caplog.records
