"""Runs several attacks at the same time."""

import asyncio
from collections import Counter
from dataclasses import replace

from bench.hostile.attacks.calls import (
    cancel_questions,
    send_random_questions,
    send_random_shard_calls,
)
from bench.hostile.attacks.half_sent import send_half_messages
from bench.hostile.attacks.sockets import hold_idle_connections
from bench.hostile.attacks.target import Target

_ROUND_SECONDS = 60.0
"""Duration of one round in seconds. The calls of each attack are spread over a round."""
_MESSAGE_BYTES = 32 << 10
"""Length of a half-sent message in bytes, within the server's limit."""


async def run_mixed(target: Target) -> Counter[str]:
    """Sends random messages to a front and a node, and cancels questions, in repeated rounds."""
    clock = asyncio.get_running_loop().time
    end, outcomes, seed = clock() + target.seconds, Counter[str](), target.seed
    while (remaining := end - clock()) > 0:
        seed += 1
        one_round = replace(target, seconds=min(remaining, _ROUND_SECONDS), seed=seed)
        for counts in await asyncio.gather(
            send_random_questions(one_round),
            send_random_shard_calls(one_round),
            cancel_questions(one_round),
        ):
            outcomes += counts
    return outcomes


async def hold_connections(target: Target) -> Counter[str]:
    """Holds idle connections and half-sent messages."""
    outcomes = Counter[str]()
    for counts in await asyncio.gather(
        hold_idle_connections(target), send_half_messages(target, _MESSAGE_BYTES)
    ):
        outcomes += counts
    return outcomes
