"""What answers take while strangers hold connections to the HTTP server and say nothing, or half.

    python -m bench.slowloris --index INDEX --questions FILE [--seconds 20] [--rounds 3] [--json]

Starts a cluster on this machine, and asks it over gRPC, one question after the other, for
`--seconds` without and as long with strangers, by turns. Half of the strangers send a header every
second and never end them, half send all of their headers and half of a body; whoever is cut off
comes again after a second. They live in a process of their own, which gives way to the cluster:
elsewhere they would have their own processors. Prints p50 and p99 in milliseconds, and exits with 1
if p99 is more than `--bar` times as high with strangers.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TIMEOUT = 30.0
_PAUSE = 1.0
_NICE = 19
_HALF = (
    b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    b"content-length: 1000\r\n\r\n{"
)


async def stranger(address: str, slow: bool) -> None:
    """Holds one connection after the other, for ever."""
    host, _, port = address.rpartition(":")
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port))
            try:
                await (_slowly(reader, writer) if slow else _half(reader, writer))
            finally:
                writer.close()
        await asyncio.sleep(_PAUSE)


async def _slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Headers without an end."""
    writer.write(b"GET / HTTP/1.1\r\n")
    while not reader.at_eof():
        writer.write(b"x: y\r\n")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await reader.read(1)


async def _half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All headers, and half of a body."""
    writer.write(_HALF)
    await reader.read()


@contextlib.contextmanager
def strangers(address: str, count: int) -> Iterator[None]:
    """So many at a time, in another process."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_hold, args=(address, count), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _hold(address: str, count: int) -> None:
    os.nice(_NICE)

    async def hold() -> None:
        await asyncio.gather(*(stranger(address, bool(n % 2)) for n in range(count)))

    asyncio.run(hold())


async def ask(client: AnswerClient, questions: Iterator[str], seconds: float) -> list[float]:
    """Seconds of each answer, for so long."""
    found = []
    until = time.perf_counter() + seconds
    while (started := time.perf_counter()) < until:
        request = answer_pb2.AnswerRequest(question=next(questions), fresh=True)
        await client.ask(request, _TIMEOUT)
        found.append(time.perf_counter() - started)
    return found


async def run(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every round, on one cluster."""
    questions = itertools.cycle([each.question for each in read_questions(options.questions)][:20])
    found: dict[str, list[float]] = {"without": [], "with strangers": []}
    plan = LocalPlan(options.index, default_bundle(), "127.0.0.1:0", http_listen="127.0.0.1:0")
    with LocalCluster(plan) as cluster:
        cluster.start()
        await cluster.wait_ready()
        async with AnswerClient(cluster.address) as client:
            await ask(client, questions, options.seconds / 4)
            for _ in range(options.rounds):
                found["without"] += await ask(client, questions, options.seconds)
                with strangers(cluster.http, options.strangers):
                    found["with strangers"] += await ask(client, questions, options.seconds)
    return {name: _figures(all_seconds) for name, all_seconds in found.items()}


def _figures(all_seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(all_seconds, n=100)
    milliseconds = {"p50_ms": round(cuts[49] * 1e3, 2), "p99_ms": round(cuts[98] * 1e3, 2)}
    return {"answers": len(all_seconds), **milliseconds}


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.slowloris", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--strangers", type=int, default=1_000, help="connections at a time")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each part of a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bar", type=float, default=1.2, help="most times that p99 may be higher")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    rows = signals.run(run(options))
    ratio = rows["with strangers"]["p99_ms"] / rows["without"]["p99_ms"]
    if options.json:
        print(json.dumps({"rows": rows, "ratio": round(ratio, 2)}, indent=2))
    else:
        for name, row in rows.items():
            print(
                f"{name:15} {row['answers']:6} answers, p50 {row['p50_ms']}, p99 {row['p99_ms']} ms"
            )
        print(f"p99 is {ratio:.2f} times as high with {options.strangers} strangers")
    return int(ratio > options.bar)


if __name__ == "__main__":
    sys.exit(main())
