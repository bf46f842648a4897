"""What an attack must not change: answers, memory, descriptors, labels."""

import asyncio
from dataclasses import dataclass

from bench import processes
from bench.hostile.labels import strange
from bench.scenarios.stage import Stage
from winnow.client.messages import AnswerClient
from winnow.errors import OverloadedError
from winnow.v1 import answer_pb2

_QUESTIONS = 10
_TIMEOUT = 20.0
_TRIES = 20
_PAUSE = 0.5
"""Seconds between two tries, while a front grants less than is asked."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Resources of all processes of a cluster."""

    memory: int
    """Bytes, without mapped files."""
    descriptors: int


def holdings(stage: Stage) -> Holdings:
    """Returns the resources that the cluster holds now."""
    pids = stage.cluster.processes.pids()
    return Holdings(processes.anonymous_memory(pids), processes.descriptors(pids))


async def answers(stage: Stage) -> dict[str, bytes]:
    """Returns the answers to the first few questions, without ids and timings.

    Raises:
        OverloadedError: the front never granted all passages.

    """
    async with AnswerClient(stage.cluster.address, client_name="witness") as client:
        return {each: await _answer(client, each) for each in stage.questions[:_QUESTIONS]}


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
        await asyncio.sleep(_PAUSE)
    raise OverloadedError(f"{question!r} was not answered in full {_TRIES} times")


async def labels(stage: Stage) -> set[str]:
    """Returns labels of any process, as NAME=VALUE, that may be made of what clients sent."""
    addresses = [stage.front_metrics, *stage.cluster.node_metrics]
    pages = await asyncio.gather(*map(processes.fetch, addresses))
    return {label for page in pages for label in strange(page)}
