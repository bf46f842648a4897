"""What HTTP costs beside gRPC: the same question, asked both ways in turn.

    python -m bench.http_edge --index INDEX --questions FILE [--rounds 300] [--bar 2.0] [--json]

Starts a cluster on this machine. Each round asks one question over gRPC and over HTTP, each on one
connection that stays open, in an order that changes from round to round; once more over HTTP each
time is on a new connection. Every question is asked before, so its answer is known: what is left is
the way to the answer and back. With --fresh passages are read each time. HTTP is written by hand,
and its JSON is read: clients of Python add a millisecond of their own. Prints p50 and p95 in
milliseconds, and exits with 1 if HTTP takes more than `--bar` milliseconds more at p50.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import quantiles

from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.v1 import answer_pb2

_TIMEOUT = 30.0
_WARMING = 20
"""Rounds that are not counted."""
Ask = Callable[[str], Awaitable[object]]


class Line:
    """A connection to an HTTP server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def post(self, question: dict[str, object]) -> object:
        """Asks; raises RuntimeError if the reply is no answer."""
        body = json.dumps(question).encode()
        head = (
            "POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"x-winnow-timeout: {_TIMEOUT:g}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        said = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", said)
        reply = await self._reader.readexactly(int(length[1]) if length else 0)
        if not said.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(f"not answered: {reply.decode()}")
        return json.loads(reply)


@asynccontextmanager
async def line(address: str) -> AsyncIterator[Line]:
    """A connection to HOST:PORT."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield Line(reader, writer)
    finally:
        writer.close()


async def seconds(ask: Ask, question: str) -> float:
    """What one question takes."""
    started = time.perf_counter()
    await ask(question)
    return time.perf_counter() - started


async def ways(stack: AsyncExitStack, grpc: str, http: str, fresh: bool) -> dict[str, Ask]:
    """How a question is asked, by name."""
    client = await stack.enter_async_context(AnswerClient(grpc))
    kept = await stack.enter_async_context(line(http))

    async def by_grpc(question: str) -> object:
        request = answer_pb2.AnswerRequest(question=question, fresh=fresh)
        return await client.ask(request, _TIMEOUT)

    async def by_http(question: str) -> object:
        return await kept.post({"question": question, "fresh": fresh})

    async def by_new_http(question: str) -> object:
        async with line(http) as new:
            return await new.post({"question": question, "fresh": fresh})

    return {"gRPC": by_grpc, "HTTP": by_http, "HTTP, new connection": by_new_http}


async def measure(
    asked: dict[str, Ask], questions: Sequence[str], rounds: int
) -> dict[str, list[float]]:
    """Seconds of every question, by the way it was asked."""
    found: dict[str, list[float]] = {name: [] for name in asked}
    for number in range(-_WARMING, rounds):
        question = questions[number % len(questions)]
        for name in random.sample(list(asked), len(asked)):
            took = await seconds(asked[name], question)
            if number >= 0:
                found[name].append(took)
    return found


def figures(found: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """p50 and p95 in milliseconds."""
    rows = {}
    for name, all_seconds in found.items():
        cuts = quantiles(all_seconds, n=100)
        rows[name] = {"p50_ms": round(cuts[49] * 1e3, 2), "p95_ms": round(cuts[94] * 1e3, 2)}
    return rows


async def run(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Every way, on one cluster."""
    questions = [each.question for each in read_questions(options.questions)][:20]
    plan = LocalPlan(options.index, default_bundle(), "127.0.0.1:0", http_listen="127.0.0.1:0")
    with LocalCluster(plan) as cluster:
        cluster.start()
        await cluster.wait_ready()
        async with AsyncExitStack() as stack:
            asked = await ways(stack, cluster.address, cluster.http, options.fresh)
            return figures(await measure(asked, questions, options.rounds))


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.http_edge", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--fresh", action="store_true", help="read passages each time")
    parser.add_argument("--bar", type=float, default=2.0, help="most ms that HTTP may take more")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    rows = signals.run(run(options))
    more = rows["HTTP"]["p50_ms"] - rows["gRPC"]["p50_ms"]
    if options.json:
        print(json.dumps({"rows": rows, "more_ms": round(more, 2)}, indent=2))
    else:
        for name, row in rows.items():
            print(f"{name:22} p50 {row['p50_ms']:8.2f} ms   p95 {row['p95_ms']:8.2f} ms")
        print(f"HTTP takes {more:.2f} ms more at p50")
    return int(more > options.bar)


if __name__ == "__main__":
    sys.exit(main())
