"""Greedy clients: many questions under way, each asked again as soon as it ends."""

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
"""Share of the time in which nothing is counted yet."""
_PAUSE = 0.1
"""Seconds that a client waits after a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyLoad:
    """A number of questions under way at any time."""

    description: str
    in_flight: int
    deadline: float = 2.0
    passages: int = 10
    client: Callable[[int, int], str] = lambda _flight, _asked: "greedy"
    """Name of the client of a flight's next question; empty for none."""
    parties: int = 1
    """Names that take turns with a polite client."""


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
        description="200 in flight, no names", in_flight=200, client=lambda _flight, _asked: ""
    ),
    "names-120": GreedyLoad(
        description="200 in flight, 120 names",
        in_flight=200,
        client=lambda flight, _: f"name-{flight % 120}",
        parties=120,
    ),
    "names-200": GreedyLoad(
        description="200 in flight, 200 names",
        in_flight=200,
        client=lambda flight, _: f"name-{flight}",
        parties=200,
    ),
    "new-names": GreedyLoad(
        description="200 in flight, a new name for each question",
        in_flight=200,
        client=lambda flight, asked: f"new-{flight}-{asked}",
        parties=50,
    ),
}


async def greedy(load: GreedyLoad, target: Target) -> Counter[str]:
    """Asks until the time is over; counts the statuses of what ended after the settling."""
    statuses = Counter[str]()
    async with open_aio_channel(target.front) as channel:
        stub = answer_pb2_grpc.AnswerServiceStub(channel)

        async def flight(number: int) -> None:
            for asked in itertools.count():
                question = f"what is number {(number + asked) % 100}?"
                request = answer_pb2.AnswerRequest(
                    question=question, passages_to_read=load.passages, max_loss=0, fresh=True
                )
                name = load.client(number, asked)
                metadata = ((KEY, name),) if name else ()
                try:
                    await stub.Answer(request, timeout=load.deadline, metadata=metadata)
                    statuses["OK"] += 1
                except grpc.aio.AioRpcError as error:
                    statuses[error.code().name] += 1
                    await asyncio.sleep(_PAUSE)

        flights = [asyncio.create_task(flight(number)) for number in range(load.in_flight)]
        await asyncio.sleep(target.seconds * SETTLING)
        statuses.clear()
        await asyncio.sleep(target.seconds * (1 - SETTLING))
        counted = statuses.copy()
        for task in flights:
            task.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
    return counted
