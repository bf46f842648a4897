"""Greedy clients, each of which keeps a constant number of questions in flight."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from bench.hostile.attacks.target import Target
from winnow.client.channels import open_aio_channel
from winnow.rpc.client_key import KEY
from winnow.v1 import answer_pb2, answer_pb2_grpc

SETTLING = 1 / 6
"""Share of the attack's time in which outcomes are not counted yet."""
_PAUSE = 0.1
"""Seconds between a failed question and the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyLoad:
    """A load with a constant number of questions in flight."""

    description: str
    in_flight: int
    deadline: float = 2.0
    passages: int = 10
    client_name: Callable[[int, int], str] = lambda _slot, _number: "greedy"
    """Returns the client name for question `number` of slot `slot`; empty for no name."""
    names: int = 1
    """Number of client names that share the cluster equally with a polite client."""


UNNAMED = "unnamed"
LOADS = {
    "hundred": GreedyLoad(description="100 in flight", in_flight=100),
    "long-deadlines": GreedyLoad(
        description="64 in flight, 10 s deadlines", in_flight=64, deadline=10.0
    ),
    "one-passage": GreedyLoad(
        description="64 in flight, one passage each", in_flight=64, passages=1
    ),
    UNNAMED: GreedyLoad(
        description="200 in flight, no names", in_flight=200, client_name=lambda _slot, _number: ""
    ),
    "names-120": GreedyLoad(
        description="200 in flight, 120 names",
        in_flight=200,
        client_name=lambda slot, _: f"name-{slot % 120}",
        names=120,
    ),
    "names-200": GreedyLoad(
        description="200 in flight, 200 names",
        in_flight=200,
        client_name=lambda slot, _: f"name-{slot}",
        names=200,
    ),
    "new-names": GreedyLoad(
        description="200 in flight, a new name for each question",
        in_flight=200,
        client_name=lambda slot, number: f"new-{slot}-{number}",
        names=50,
    ),
}


async def send_greedy_load(load: GreedyLoad, target: Target) -> Counter[str]:
    """Asks questions until the time is over.

    Returns how many replies had each status, without those of the first `SETTLING` seconds.
    """
    statuses = Counter[str]()
    async with open_aio_channel(target.front) as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)

        async def ask_in_loop(slot: int) -> None:
            for number in itertools.count():
                question = f"what is number {(slot + number) % 100}?"
                request = answer_pb2.AnswerRequest(
                    question=question, passages_to_read=load.passages, max_loss=0, fresh=True
                )
                name = load.client_name(slot, number)
                metadata = ((KEY, name),) if name else ()
                try:
                    await stub.Answer(request, timeout=load.deadline, metadata=metadata)
                    statuses["OK"] += 1
                except grpc.aio.AioRpcError as error:
                    statuses[error.code().name] += 1
                    await asyncio.sleep(_PAUSE)

        loops = [asyncio.create_task(ask_in_loop(slot)) for slot in range(load.in_flight)]
        await asyncio.sleep(target.seconds * SETTLING)
        statuses.clear()
        await asyncio.sleep(target.seconds * (1 - SETTLING))
        final_statuses = statuses.copy()
        for task in loops:
            task.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
    return final_statuses
