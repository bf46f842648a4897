"""Asking a running front, one question after the other, and what processes spend on it."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.cli.units.spent import seconds_of
from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TIMEOUT = 30.0
WARM_UP = 20
"""Questions that are not counted."""


@dataclass(frozen=True, slots=True)
class MeanTimes:
    """What questions took, each on average, in milliseconds."""

    spent: tuple[float, ...]
    """Processor time of each process."""
    encode: float
    node: float
    """Of content nodes, to retrieve and to read."""


async def ask(
    client: AnswerClient, questions: Sequence[str], passages: int, pids: Sequence[int]
) -> MeanTimes:
    """Asks every question once, after some that warm up.

    Raises:
        WinnowError: a question was not answered.

    """
    for question in questions[:WARM_UP]:
        await _answer(client, question, passages)
    before = [seconds_of(pid) for pid in pids]
    encode = node = 0.0
    for question in questions:
        timings = (await _answer(client, question, passages)).timings
        encode += timings.encode_ms
        node += sum(own.retrieve_ms + own.read_ms for own in timings.shards)
    spent = [1e3 * (seconds_of(pid) - was) for pid, was in zip(pids, before, strict=True)]
    count = len(questions)
    return MeanTimes(tuple(each / count for each in spent), encode / count, node / count)


async def _answer(client: AnswerClient, question: str, passages: int) -> answer_pb2.AnswerResponse:
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=passages, max_loss=0, fresh=True
    )
    return await client.ask(request, _TIMEOUT)
