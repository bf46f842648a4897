"""One polite client beside greedy ones: nobody takes another's turn.

    python -m bench.fairness --index INDEX --questions FILE [--seconds 10] [--json]

A cluster is started on this machine. Each row is a load beside which one polite client asks one
question after the other, of ten passages and with two seconds each. The load comes from a process
of its own that gives way to all others, as if it were another machine: in the polite client's it
would make that slow by itself. Medians are of the polite client's answers; "alone" is measured
before each row, since other work on the machine changes. Exit code 1 if a promise does not hold. A
load with names is compared with the one before it, which has none; on a machine that does other
work answers a second differ by more than the promise.
"""

import asyncio
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

import grpc

from bench.common.arguments import parser
from bench.common.arguments import questions as read
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.client.channels import open_aio_channel
from winnow.rpc.client_key import KEY
from winnow.v1 import answer_pb2, answer_pb2_grpc

MOST_SLOWER = 3.0
"""The polite client's median beside others, as a multiple of its own alone."""
LEAST_ANSWERED = 0.95
"""Of its questions beside one greedy client; and goodput with names, of that without."""
_CALM = 20.0
"""Seconds after which a crowd is forgotten for sure."""
PAUSE = 0.1
"""Seconds that a refused greedy client waits."""
_NICE = 10
_GRACE = 5.0
"""Seconds in which the greedy clients end."""


@dataclass
class Tally:
    """What became of one party's questions."""

    seconds: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)
    passages: int = 0

    @property
    def asked(self) -> int:
        """Questions that were asked."""
        return len(self.seconds) + sum(self.failed.values())

    @property
    def p50(self) -> float:
        """Median of the answered ones, in seconds; infinite if there is none."""
        return median(self.seconds) if self.seconds else float("inf")


@dataclass(frozen=True)
class Greed:
    """A load: so many questions in flight, each asked again at once."""

    name: str
    flights: int
    deadline: float = 2.0
    passages: int = 10
    names: Callable[[int, int], str] = lambda _flight, _asked: "greedy"
    """The name of a flight's next question."""
    parties: int = 1
    """Names that take turns with the polite one; names that are used once take none of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """One load, measured."""

    load: str
    alone_ms: float
    beside_ms: float
    polite_answered: int
    polite_asked: int
    polite_passages: float
    """Read for an answer of the polite client, at the mean."""
    greedy_answered: int
    greedy_failed: dict[str, int]
    polite_failed: dict[str, int]
    polite_due: int
    """Answers that the polite client would have by turns."""


class PartyAsker:
    """Asks a front node, under any name."""

    def __init__(self, channel: grpc.aio.Channel, questions: Sequence[str]) -> None:
        self._stub = answer_pb2_grpc.AnswerServiceStub(channel)
        self._questions = itertools.cycle(questions)

    async def ask(self, tally: Tally, name: str, passages: int, deadline: float) -> bool:
        """Asks the next question; whether it is answered."""
        request = answer_pb2.AnswerRequest(
            question=next(self._questions), passages_to_read=passages, max_loss=0, fresh=True
        )
        began = time.perf_counter()
        metadata = ((KEY, name),) if name else ()
        try:
            reply = await self._stub.Answer(request, timeout=deadline, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            tally.failed[code] = tally.failed.get(code, 0) + 1
            return False
        tally.seconds.append(time.perf_counter() - began)
        tally.passages += reply.passages_read
        return True

    async def calm(self) -> None:
        """Asks until all passages are read again: a crowd is remembered for a while."""
        until = time.perf_counter() + _CALM
        while time.perf_counter() < until:
            tally = Tally()
            if await self.ask(tally, "polite", 10, 2.0) and tally.passages == 10:
                return
            await asyncio.sleep(PAUSE)

    async def polite(self, seconds: float) -> Tally:
        """One question after the other."""
        tally, until = Tally(), time.perf_counter() + seconds
        while time.perf_counter() < until:
            if not await self.ask(tally, "polite", 10, 2.0):
                await asyncio.sleep(PAUSE)
        return tally

    async def greedy(self, greed: Greed, tally: Tally) -> None:
        """Asks until it is cancelled."""

        async def flight(number: int) -> None:
            for asked in itertools.count():
                name = greed.names(number, asked)
                if not await self.ask(tally, name, greed.passages, greed.deadline):
                    await asyncio.sleep(PAUSE)

        await asyncio.gather(*(flight(number) for number in range(greed.flights)))


UNNAMED = Greed("200 in flight, no names", 200, names=lambda _flight, _asked: "")
GREEDS = [
    Greed("100 in flight", 100),
    Greed("64 in flight, 10 s deadlines", 64, deadline=10.0),
    Greed("64 in flight, one passage each", 64, passages=1),
    UNNAMED,
    Greed("200 in flight, 120 names", 200, names=lambda n, _: f"name-{n % 120}", parties=120),
    UNNAMED,
    Greed("200 in flight, 200 names", 200, names=lambda n, _: f"name-{n}", parties=200),
    UNNAMED,
    Greed("200 in flight, always new names", 200, names=lambda n, k: f"new-{n}-{k}", parties=50),
]


Count = tuple[int, dict[str, int]]
"""Questions that were answered so far, and those that failed by their statuses."""


@contextmanager
def crowd(address: str, questions: Sequence[str], number: int) -> Iterator[Callable[[], Count]]:
    """The load of that number in GREEDS while in use; counts when it is called. That blocks."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=flood, args=(address, questions, number, theirs), daemon=True)
    process.start()
    theirs.close()  # or its end would go unnoticed

    def count() -> Count:
        ours.send(True)
        answered, failed = ours.recv()
        return answered, failed

    try:
        yield count
    finally:
        ours.close()
        process.join(_GRACE)
        process.kill()


def flood(address: str, questions: Sequence[str], number: int, pipe: Connection) -> None:
    """The process of a crowd: says its count as often as it is asked, until the pipe is closed."""
    os.nice(_NICE)
    with suppress(EOFError, ConnectionError):
        asyncio.run(_flood(address, questions, GREEDS[number], pipe))


async def _flood(address: str, questions: Sequence[str], greed: Greed, pipe: Connection) -> None:
    taken = Tally()
    async with open_aio_channel(address) as channel:
        asking = asyncio.create_task(PartyAsker(channel, questions).greedy(greed, taken))
        try:
            while await asyncio.to_thread(pipe.recv):
                if asking.done():
                    asking.result()
                pipe.send((len(taken.seconds), taken.failed))
        finally:
            asking.cancel()


async def measure(
    address: str, questions: Sequence[str], asking: PartyAsker, number: int, seconds: float
) -> Row:
    """One row: alone, then beside."""
    greed = GREEDS[number]
    await asking.calm()
    alone = await asking.polite(seconds / 3)
    with crowd(address, questions, number) as count:
        await asyncio.to_thread(count)  # it has begun
        await asking.polite(seconds / 5)  # until the queues are as they stay
        before, _ = await asyncio.to_thread(count)
        beside = await asking.polite(seconds)
        after, failed = await asyncio.to_thread(count)
    answered = after - before
    return Row(
        greed.name,
        alone.p50 * 1e3,
        beside.p50 * 1e3,
        len(beside.seconds),
        beside.asked,
        beside.passages / max(len(beside.seconds), 1),
        answered,
        failed,
        beside.failed,
        # less the one for which it still waits at the end
        max((answered + len(beside.seconds)) // (greed.parties + 1) - 1, 0),
    )


def broken(rows: Sequence[Row]) -> list[str]:
    """The promises that do not hold."""
    found = []
    for row in rows:
        if row.load == UNNAMED.name or "names" not in row.load:  # one greedy client
            if row.beside_ms > MOST_SLOWER * row.alone_ms:
                times = row.beside_ms / row.alone_ms
                found.append(f"{row.load}: the polite client is {times:.1f} times as slow as alone")
            if row.polite_answered < LEAST_ANSWERED * row.polite_asked:
                found.append(
                    f"{row.load}: {row.polite_answered} of {row.polite_asked} polite questions "
                    "were answered"
                )
        elif row.polite_answered < min(row.polite_due, row.polite_asked):
            found.append(
                f"{row.load}: {row.polite_answered} polite questions were answered, "
                f"{row.polite_due} would be its turns"
            )
    unnamed = 0
    for row in rows:
        answers = row.greedy_answered + row.polite_answered
        if row.load == UNNAMED.name:
            unnamed = answers
        elif "names" in row.load and answers < LEAST_ANSWERED * unnamed:
            found.append(f"{row.load}: {answers} answers, {unnamed} without names")
    return found


async def run(index: Path, questions: Sequence[str], seconds: float, only: str) -> list[Row]:
    """Every row whose load has `only` in its name, on one cluster."""
    with LocalCluster(LocalPlan(index, default_bundle(), "127.0.0.1:0")) as cluster:
        cluster.start()
        await cluster.wait_ready()
        async with open_aio_channel(cluster.address) as channel:
            asking = PartyAsker(channel, questions)
            await asking.polite(2.0)
            numbers = [number for number, greed in enumerate(GREEDS) if only in greed.name]
            address = cluster.address
            return [await measure(address, questions, asking, n, seconds) for n in numbers]


def main() -> None:
    """Prints the rows, and what does not hold."""
    arguments = parser("fairness", __doc__, asks=True)
    arguments.add_argument(
        "--seconds", type=float, default=10.0, help="Length of each load; at most 60."
    )
    arguments.add_argument("--only", default="", help="Only loads with this in their names.")
    options = arguments.parse_args()
    asked = read(options.questions)
    rows = asyncio.run(run(options.index, asked, min(options.seconds, 60.0), options.only))
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        for row in rows:
            print(
                f"{row.load:34} alone {row.alone_ms:6.0f} ms, beside {row.beside_ms:6.0f} ms "
                f"({row.beside_ms / row.alone_ms:.1f} times), {row.polite_answered} of "
                f"{row.polite_asked} polite answered ({row.polite_passages:.1f} passages), "
                f"failed {row.polite_failed}; {row.greedy_answered} greedy, "
                f"failed {row.greedy_failed}"
            )
    faults = broken(rows)
    for fault in faults:
        print(f"does not hold: {fault}", file=sys.stderr)
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
