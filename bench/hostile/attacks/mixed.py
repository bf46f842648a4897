"""A little of several attacks, for as long as it takes."""

import asyncio
from collections import Counter
from dataclasses import replace

from bench.hostile.attacks import Target
from bench.hostile.attacks.calls import cancels, questions, shards
from bench.hostile.attacks.half import half_sent
from bench.hostile.attacks.sockets import connections

_STRETCH = 60.0
"""Seconds over which the counts of an attack are spread, again and again."""
_LENGTH = 32 << 10
"""Bytes of a message that a server would take, if it came to its end."""


async def mixed(target: Target) -> Counter[str]:
    """Nonsense to fronts and nodes, and questions that are given up, stretch by stretch."""
    clock = asyncio.get_running_loop().time
    until, outcomes, seed = clock() + target.seconds, Counter[str](), target.seed
    while (left := until - clock()) > 0:
        seed += 1
        part = replace(target, seconds=min(left, _STRETCH), seed=seed)
        for each in await asyncio.gather(questions(part), shards(part), cancels(part)):
            outcomes += each
    return outcomes


async def held(target: Target) -> Counter[str]:
    """All that stays open: connections, and messages that are half there."""
    outcomes = Counter[str]()
    for each in await asyncio.gather(connections(target), half_sent(target, _LENGTH)):
        outcomes += each
    return outcomes
