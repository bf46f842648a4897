"""What must be the same after an attack as before it: answers, memory, descriptors, labels."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bench.common import gauges
from bench.faults.stage import Stage
from bench.hostile.labels import strange
from winnow.client.messages import AnswerClient
from winnow.errors import OverloadedError
from winnow.v1 import answer_pb2

_QUESTIONS = 10
_TIMEOUT = 20.0
_TRIES = 20
_CALMING = 0.5
"""Seconds between two tries, while a front still grants less than is asked."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What the processes of a cluster hold, together."""

    memory: int
    """Bytes, without mapped files."""
    descriptors: int


def holdings(stage: Stage) -> Holdings:
    """What the cluster holds now."""
    pids = stage.cluster.processes.pids()
    return Holdings(gauges.own_memory(pids), gauges.descriptors(pids))


async def answers(stage: Stage, questions: Sequence[str]) -> dict[str, bytes]:
    """The bytes of the answers to the first few questions, without what time and chance add.

    Raises:
        OverloadedError: the front never granted all that was asked.

    """
    async with AnswerClient(stage.cluster.address, "witness") as client:
        return {each: await _answer(client, each) for each in questions[:_QUESTIONS]}


async def _answer(client: AnswerClient, question: str) -> bytes:
    request = answer_pb2.AnswerRequest(question=question, fresh=True)
    for _ in range(_TRIES):
        try:
            reply = await client.ask(request, _TIMEOUT)
        except OverloadedError:
            pass
        else:
            if reply.passages_granted == reply.passages_asked and reply.coverage.complete:
                kept = answer_pb2.AnswerResponse(
                    has_answer=reply.has_answer, answers=reply.answers, coverage=reply.coverage
                )
                return kept.SerializeToString(deterministic=True)
        await asyncio.sleep(_CALMING)
    raise OverloadedError(f"{question!r} was not answered in full {_TRIES} times")


async def labels(stage: Stage) -> set[str]:
    """Labels of any process, as NAME=VALUE, that may be made of what clients sent."""
    addresses = [stage.front_metrics, *stage.cluster.node_metrics]
    pages = await asyncio.gather(*map(gauges.fetch, addresses))
    return {label for page in pages for label in strange(page)}
