"""What a call costs at the edge: processor time of the front node for an answer, and for a refusal.

    python -m bench.edge --index INDEX --questions FILE [--seconds 10] [--only NAME] [--json]

Starts a cluster on this machine. Each row is a load; what the kernel counts for the front's process
(user and system, all threads, Linux) is divided by the calls. Rows whose calls are refused answer
some, too: these are taken off, at the cost of an answer in the rows before. A few questions are
asked again and again, so their encodings are cached. Other work on the machine changes processor
time far less than latency; still, compare two versions by turns.
"""

import argparse
import asyncio
import itertools
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.idle import spent
from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.channels import open_aio_channel
from winnow.rpc.client_key import KEY
from winnow.v1 import answer_pb2, answer_pb2_grpc

_TIMEOUT = 2.0


_QUESTIONS = 20
_SETTLING = 1.0
"""Seconds of a load before anything is counted."""
_Ask = Callable[[grpc.aio.Channel, str, int], Awaitable[bool]]
"""Makes the next call of a flight, with a question, and says whether it was answered."""


@dataclass(frozen=True, slots=True)
class Load:
    """Calls in flight, each made again at once."""

    name: str
    flights: int
    ask: _Ask
    answers_like: str = ""
    """The load whose answers cost as much as those among these calls."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a load came to."""

    answered: int
    refused: int
    seconds: float
    """Processor time of the front node."""


def question(passages: int, name: Callable[[int], str] = lambda _flight: "") -> _Ask:
    """Asks for so many passages, each flight under a name."""

    async def ask(channel: grpc.aio.Channel, text: str, flight: int) -> bool:
        request = answer_pb2.AnswerRequest(
            fresh=True, question=text, passages_to_read=passages, max_loss=0
        )
        metadata = ((KEY, key),) if (key := name(flight)) else ()
        stub = answer_pb2_grpc.AnswerServiceStub(channel)
        call = stub.Answer(request, timeout=_TIMEOUT, metadata=metadata)
        return await call.code() is grpc.StatusCode.OK

    return ask


async def health(channel: grpc.aio.Channel, _text: str, _flight: int) -> bool:
    """Asks for the health; it takes what gRPC takes for any call."""
    stub = health_pb2_grpc.HealthStub(channel)
    await stub.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT)
    return True


TEN, ONE = "answered, ten passages", "answered, one passage"
LOADS = (
    Load(TEN, 2, question(10)),
    Load(ONE, 2, question(1)),
    Load("health checks", 16, health),
    Load("not valid", 16, question(1_000_000)),
    Load("refused: 200 in flight, one name", 200, question(10, lambda _: "greedy"), TEN),
    Load("refused: 200 in flight, 200 names", 200, question(10, "name-{}".format), TEN),
    Load("refused: 200 of one passage", 200, question(1, lambda _: "greedy"), ONE),
)


async def measure(address: str, pid: int, texts: Sequence[str], load: Load, seconds: float) -> Seen:
    """One load for so many seconds."""
    counts = {True: 0, False: 0}
    asked = itertools.cycle(texts)
    async with open_aio_channel(address) as channel:

        async def flight(number: int) -> None:
            while True:
                counts[await load.ask(channel, next(asked), number)] += 1

        flights = [asyncio.create_task(flight(number)) for number in range(load.flights)]
        await asyncio.sleep(_SETTLING)
        before, began = counts.copy(), spent(pid)
        await asyncio.sleep(seconds)
        seen = {ok: counts[ok] - before[ok] for ok in counts}
        took = spent(pid) - began
        for task in flights:
            task.cancel()
        results = await asyncio.gather(*flights, return_exceptions=True)
    for ended in (each for each in results if not isinstance(each, asyncio.CancelledError)):
        raise RuntimeError(f"{load.name}: a flight ended by itself") from ended
    return Seen(seen[True], seen[False], took)


def per_call(seen: Seen, answer: float | None) -> float:
    """Milliseconds for each call that was refused, with `answer` for each that was not; for each
    call of any kind if that is None.
    """
    if answer is None:
        return seen.seconds * 1e3 / max(seen.answered + seen.refused, 1)
    return (seen.seconds * 1e3 - seen.answered * answer) / max(seen.refused, 1)


async def run(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every load, on one cluster."""
    texts = [each.question for each in read_questions(options.questions)][:_QUESTIONS]
    rows: dict[str, dict[str, float]] = {}
    costs: dict[str, float] = {}
    plan = LocalPlan(options.index, default_bundle(), "127.0.0.1:0")
    with LocalCluster(plan) as cluster:
        cluster.start()
        await cluster.wait_ready()
        async with open_aio_channel(cluster.address) as channel:
            for text in texts:
                await question(1)(channel, text, 0)
        for load in LOADS:
            if options.only in load.name or load.name in (TEN, ONE):
                pid = cluster.pid("front")
                seen = await measure(cluster.address, pid, texts, load, options.seconds)
                costs[load.name] = per_call(seen, costs.get(load.answers_like))
                rows[load.name] = {**asdict(seen), "ms_per_call": round(costs[load.name], 3)}
    return rows


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.edge", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--only", default="", help="only loads with this in their names")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    rows = signals.run(run(options))
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    for name, row in rows.items():
        print(
            f"{name:40} {row['ms_per_call']:6.2f} ms of the front's processor a call "
            f"({row['answered']:.0f} answered, {row['refused']:.0f} not, in {row['seconds']:.1f} s)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
