"""Asks a running front node one question at a time, and reads the CPU time of processes (Linux)."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TIMEOUT = 30.0
WARM_UP = 20
"""Number of questions that are asked before the measured ones."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class MeanTimes:
    """Mean times per question, in milliseconds."""

    cpu: tuple[float, ...]
    """CPU time of each process."""
    encode: float
    """Time to encode the question."""
    node: float
    """Time of content nodes to retrieve and read."""


async def time_questions(
    client: AnswerClient, questions: Sequence[str], passages: int, pids: Sequence[int]
) -> MeanTimes:
    """Asks every question once, after `WARM_UP` questions.

    Raises WinnowError if a question was not answered.
    """
    for question in questions[:WARM_UP]:
        await _answer(client, question, passages)
    before = [processor_seconds(pid) for pid in pids]
    encode = node = 0.0
    for question in questions:
        timings = (await _answer(client, question, passages)).timings
        encode += timings.encode_ms
        node += sum(own.retrieve_ms + own.read_ms for own in timings.shards)
    cpu = [1e3 * (processor_seconds(pid) - old) for pid, old in zip(pids, before, strict=True)]
    count = len(questions)
    return MeanTimes(tuple(each / count for each in cpu), encode / count, node / count)


async def _answer(client: AnswerClient, question: str, passages: int) -> answer_pb2.AnswerResponse:
    request = answer_pb2.AnswerRequest(
        question=question, passages_to_read=passages, answers=passages, max_loss=0, fresh=True
    )
    return await client.ask(request, _TIMEOUT)


def processor_seconds(pid: int) -> float:
    """Returns the processor time of the threads that a process has now, in seconds.

    Unlike elapsed time, it hardly depends on other work of the machine.
    """
    return sum(seconds_of_threads(pid).values())


def seconds_of_threads(pid: int) -> dict[int, float]:
    """Returns the processor time of each thread of a process, in seconds, by its id.

    The id of the main thread is `pid`.
    """
    found = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # the thread has ended
            nanoseconds = (thread / "schedstat").read_text(encoding="ascii").split()[0]
            found[int(thread.name)] = int(nanoseconds) / 1e9
    return found


@dataclass(frozen=True, slots=True)
class ProcessorTimes:
    """Processor time of a process for one call, in milliseconds."""

    total: float
    busiest_thread: float
    """Time of the busiest thread without the main thread, which runs the event loop."""

    @property
    def others(self) -> float:
        """Time of all other threads: of the event loop, and of gRPC."""
        return self.total - self.busiest_thread


class ProcessorClock:
    """Measures the processor time of a process since it was created."""

    def __init__(self, pid: int) -> None:
        self._pid, self._before = pid, seconds_of_threads(pid)

    def read(self) -> ProcessorTimes:
        """Returns the processor time since the start."""
        now = seconds_of_threads(self._pid)
        spent = {each: 1e3 * (now[each] - self._before.get(each, 0.0)) for each in now}
        others = (ms for each, ms in spent.items() if each != self._pid)
        return ProcessorTimes(sum(spent.values()), max(others, default=0.0))


def resident_memory(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
