"""Small clusters of this machine, asked in closed loops: what the simulation is compared with."""

import asyncio
import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.simulation.front import Asked
from winnow.bundle import default_bundle, load_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.units.fronts import write_passages
from winnow.cli.units.spent import seconds_of
from winnow.client.messages import AnswerClient
from winnow.domain.layout import shard_of
from winnow.errors import WinnowError
from winnow.sizing.asked import made_up_questions
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import answer_pb2

PASSAGES = 3
"""Read for each question: few, so that many questions are asked in a short time."""
_TIMEOUT = 30.0
_WARM_UP = 60
_PLAIN = ("--cache-mb", "0", "--answer-cache-mb", "0", "--brown-out-floor", "1")


@dataclass(frozen=True, slots=True)
class Known:
    """A question, and the passages that are read for it, wherever they lie."""

    text: str
    tokens: int
    reads: tuple[tuple[str, int], ...]
    """The id of each passage, and the length of the reader's input."""

    def over(self, shards: int) -> Asked:
        """The same of an index of so many shards."""
        reads = tuple((shard_of(name, shards), tokens) for name, tokens in self.reads)
        return Asked(self.tokens, reads)


def indexes(place: Path, shards: Sequence[int]) -> dict[int, Path]:
    """Indexes of the same passages; they are encoded once."""
    source = place / "passages.jsonl"
    write_passages(source)
    found = {}
    for number in shards:
        found[number] = place / f"index-{number}"
        given = ["--passages", str(source), "--out", str(found[number]), "--shards", str(number)]
        subprocess.run(
            [sys.executable, "-m", "winnow", "index", "build", *given],
            check=True,
            stdout=sys.stderr,
        )
        source = found[number]
    return found


@dataclass(frozen=True, slots=True)
class Seen:
    """Answers that were measured."""

    seconds: tuple[float, ...]
    """Of each answer."""
    spent: float
    """Seconds of cores for an answer, of all processes together, the client's too."""


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster that serves."""

    address: str
    pids: tuple[int, ...]

    def spent(self) -> float:
        """Seconds of cores so far, of its processes and of this one."""
        return sum(map(seconds_of, self.pids)) + time.process_time()


@contextmanager
def cluster(index: Path) -> Iterator[Running]:
    """A running cluster, as `winnow up` starts it."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    with LocalCluster(LocalPlan(index, default_bundle(), address, front=_PLAIN)) as running:
        running.start()
        asyncio.run(running.wait_ready())
        yield Running(running.address, tuple(running.processes.pids()))


async def known(address: str) -> list[Known]:
    """Every question, asked once to learn which passages it reads."""
    tokenizer = Tokenizer(load_bundle(default_bundle()).tokenizer)
    found = []
    async with AnswerClient(address) as client:
        for text in made_up_questions():
            reply = await client.ask(_request(text), _TIMEOUT)
            tokens = len(tokenizer.tokenise(text))
            passages = [answer.passage for answer in reply.answers]
            lengths = (
                tokens + len(tokenizer.tokenise(p.title)) + len(tokenizer.tokenise(p.text))
                for p in passages
            )
            reads = zip((p.id for p in passages), lengths, strict=True)
            found.append(Known(text, tokens, tuple(reads)))
    return found


async def closed_loop(
    running: Running, questions: Sequence[Known], clients: int, seconds: float
) -> Seen:
    """What clients see that each ask again once they are answered."""
    found: list[float] = []
    source = itertools.cycle(questions)
    async with AnswerClient(running.address) as client:
        for _ in range(_WARM_UP):
            with contextlib.suppress(WinnowError):
                await client.ask(_request(next(source).text), _TIMEOUT)
        until, before = time.perf_counter() + seconds, running.spent()

        async def one() -> None:
            while (began := time.perf_counter()) < until:
                try:
                    await client.ask(_request(next(source).text), _TIMEOUT)
                except WinnowError as error:  # the other answers count
                    print(f"failed: {error}", file=sys.stderr)
                    continue
                found.append(time.perf_counter() - began)

        await asyncio.gather(*(one() for _ in range(clients)))
        return Seen(tuple(found), (running.spent() - before) / max(len(found), 1))


def _request(text: str) -> answer_pb2.AnswerRequest:
    return answer_pb2.AnswerRequest(
        question=text, passages_to_read=PASSAGES, answers=PASSAGES, max_loss=0, fresh=True
    )
