"""Reads answers, memory, descriptors and metric labels, which an attack must not change."""

import asyncio
from dataclasses import dataclass

from bench import processes
from bench.hostile.labels import unexpected_labels
from bench.scenarios.stage import Stage
from winnow.client.messages import AnswerClient
from winnow.errors import OverloadedError
from winnow.v1 import answer_pb2

_QUESTIONS = 10
_TIMEOUT = 20.0
_ATTEMPTS = 20
_RETRY_SECONDS = 0.5
"""Seconds between two attempts, while the front grants fewer passages than requested."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources in use by all processes of a cluster together."""

    memory: int
    """Resident bytes without mapped files."""
    descriptors: int
    """Open file descriptors."""


def cluster_resources(stage: Stage) -> Resources:
    """Reads the resources that the cluster uses now."""
    pids = stage.cluster.processes.pids()
    return Resources(processes.anonymous_bytes(pids), processes.open_descriptors(pids))


async def baseline_answers(stage: Stage) -> dict[str, bytes]:
    """Asks the first questions; returns each serialised answer, without request id and timings.

    Raises:
        OverloadedError: the front never granted all passages.

    """
    questions = stage.questions[:_QUESTIONS]
    async with AnswerClient(stage.cluster.address, client_name="witness") as client:
        return {question: await _answer(client, question) for question in questions}


async def _answer(client: AnswerClient, question: str) -> bytes:
    request = answer_pb2.AnswerRequest(question=question, fresh=True)
    for _ in range(_ATTEMPTS):
        try:
            reply = await client.ask(request, _TIMEOUT)
        except OverloadedError:
            pass
        else:
            if reply.passages_granted == reply.passages_asked and reply.coverage.complete:
                comparable = answer_pb2.AnswerResponse(
                    has_answer=reply.has_answer,
                    answers=reply.answers,
                    coverage=reply.coverage,
                )
                return comparable.SerializeToString(deterministic=True)
        await asyncio.sleep(_RETRY_SECONDS)
    raise OverloadedError(f"{question!r} got no complete answer in {_ATTEMPTS} attempts")


async def unexpected_metric_labels(stage: Stage) -> set[str]:
    """Returns the metric labels of all processes that may come from client input, as NAME=VALUE."""
    addresses = [stage.front_metrics, *stage.cluster.node_metrics]
    pages = await asyncio.gather(*map(processes.fetch_metrics, addresses))
    return {label for page in pages for label in unexpected_labels(page)}
