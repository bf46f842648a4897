"""Both read scopes on 1, 2 and 4 shards: time, passages read, exact match.

    python bench/scopes.py --passages FILE --questions FILE [--questions FILE]

Builds the same passages as 1, 2 and 4 shards, serves all three at once, and asks every question of
every cluster under both scopes in turn, so that the machine's drift falls on all alike.
"""

import argparse
import asyncio
import itertools
import json
import subprocess
import sys
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from winnow.bundle import default_bundle
from winnow.cli.evaluation.tally import QuestionOutcome, report
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.cli.questions import AskedQuestion, read_questions
from winnow.client.messages import AnswerClient
from winnow.convert.answer import read_scope_message
from winnow.domain.question import ReadScope
from winnow.v1 import answer_pb2

SHARDS = (1, 2, 4)
Point = tuple[int, ReadScope, int]


def build(passages: Path, work: Path, shards: int) -> Path:
    target = work / f"{passages.stem}-{shards}"
    if not target.exists():
        command = [sys.executable, "-m", "winnow", "index", "build", "--passages", str(passages)]
        subprocess.run([*command, "--out", str(target), "--shards", str(shards)], check=True)
    return target


async def measure(
    addresses: dict[int, str], questions: list[AskedQuestion], points: list[Point]
) -> dict[Point, list[QuestionOutcome]]:
    found: dict[Point, list[QuestionOutcome]] = {point: [] for point in points}
    async with AsyncExitStack() as stack:
        clients = {
            shards: await stack.enter_async_context(AnswerClient(address))
            for shards, address in addresses.items()
        }
        for number, asked in enumerate(questions):
            for point in points:
                shards, scope, passages = point
                request = answer_pb2.AnswerRequest(
                    question=asked.question,
                    passages_to_read=passages,
                    answers=100,
                    max_loss=0,
                    read_scope=read_scope_message(scope),
                    fresh=True,
                )
                started = time.perf_counter()
                reply = await clients[shards].ask(request, 30)
                found[point].append(QuestionOutcome(asked, reply, time.perf_counter() - started))
            if number % 20 == 0:
                print(f"{number}/{len(questions)}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=Path, required=True)
    parser.add_argument("--questions", type=Path, action="append", required=True)
    parser.add_argument("--limit", type=int, default=150, help="questions of each file")
    parser.add_argument("--read", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--work", type=Path, default=Path("var/scopes"))
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    questions: list[AskedQuestion] = []
    for path in options.questions:
        every = read_questions(path)
        questions += every[:: max(len(every) // options.limit, 1)][: options.limit]
    points = list(itertools.product(SHARDS, ReadScope, options.read))
    with ExitStack() as stack:
        clusters = {}
        for shards in SHARDS:
            index = build(options.passages, options.work, shards)
            plan = LocalPlan(index, default_bundle(), f"127.0.0.1:{free_ports(1)[0]}")
            clusters[shards] = stack.enter_context(LocalCluster(plan))
            clusters[shards].start()
            asyncio.run(clusters[shards].wait_ready())
        addresses = {shards: cluster.address for shards, cluster in clusters.items()}
        asyncio.run(measure(addresses, questions[:5], points))
        found = asyncio.run(measure(addresses, questions, points))
    for (shards, scope, passages), outcomes in found.items():
        figures = report(outcomes, passages * (shards if scope is ReadScope.PER_SHARD else 1))
        row = {
            "shards": shards,
            "scope": scope.value,
            "passages_to_read": passages,
            "passages_read": round(figures.passages_read, 1),
            "p50_ms": round(figures.p50_ms, 1),
            "p95_ms": round(figures.p95_ms, 1),
            "exact_match": round(figures.figures[-1].exact_match, 1),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
