"""Several attacks at once."""

import asyncio
from collections import Counter
from dataclasses import replace

from bench.hostile.attacks.calls import cancels, questions, shards
from bench.hostile.attacks.half import half_sent
from bench.hostile.attacks.sockets import connections
from bench.hostile.attacks.target import Target

_STRETCH = 60.0
"""Seconds over which the calls of an attack are spread, before it begins again."""
_LENGTH = 32 << 10
"""Bytes of a message, within the server's limit."""


async def mixed(target: Target) -> Counter[str]:
    """Sends random messages to a front and a node, and cancels questions, again and again."""
    clock = asyncio.get_running_loop().time
    until, outcomes, seed = clock() + target.seconds, Counter[str](), target.seed
    while (left := until - clock()) > 0:
        seed += 1
        part = replace(target, seconds=min(left, _STRETCH), seed=seed)
        for each in await asyncio.gather(questions(part), shards(part), cancels(part)):
            outcomes += each
    return outcomes


async def held(target: Target) -> Counter[str]:
    """Holds connections and half-sent messages."""
    outcomes = Counter[str]()
    for each in await asyncio.gather(connections(target), half_sent(target, _LENGTH)):
        outcomes += each
    return outcomes
