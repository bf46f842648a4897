"""Asks a running front node, question by question, and reads what processes spend (Linux)."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TIMEOUT = 30.0
WARM_UP = 20
"""Questions that are not counted."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MeanTimes:
    """Mean times of a question, in milliseconds."""

    spent: tuple[float, ...]
    """Processor time of each process."""
    encode: float
    node: float
    """Time of content nodes, to retrieve and to read."""


async def ask(
    client: AnswerClient, questions: Sequence[str], passages: int, pids: Sequence[int]
) -> MeanTimes:
    """Asks every question once, after some that warm up.

    Raises WinnowError if a question was not answered.
    """
    for question in questions[:WARM_UP]:
        await _answer(client, question, passages)
    before = [_seconds_of(pid) for pid in pids]
    encode = node = 0.0
    for question in questions:
        timings = (await _answer(client, question, passages)).timings
        encode += timings.encode_ms
        node += sum(own.retrieve_ms + own.read_ms for own in timings.shards)
    spent = [1e3 * (_seconds_of(pid) - was) for pid, was in zip(pids, before, strict=True)]
    count = len(questions)
    return MeanTimes(tuple(each / count for each in spent), encode / count, node / count)


async def _answer(client: AnswerClient, question: str, passages: int) -> answer_pb2.AnswerResponse:
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=passages, max_loss=0, fresh=True
    )
    return await client.ask(request, _TIMEOUT)


def _seconds_of(pid: int) -> float:
    """Processor time of a process so far, of all its threads; in steps of 10 ms."""
    parts = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / _TICKS


def estimate_memory(pid: int) -> int:
    """Bytes of a process in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
