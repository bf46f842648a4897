"""Compares the processor time of an answer with that of another checkout, such as an older version.

    python -m bench against --before CHECKOUT --index INDEX --questions FILE [--rounds 40]

Runs a front and a content node of this checkout (or of `--now`), and a pair of the checkout at
`--before`, with the same index of one shard. Asks both pairs the same questions in turns of
`--turn` questions, and reads the processor time of each pair after each turn. The order of the
pairs reverses from round to round.

The result is the ratio of the median processor times of a turn.
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.figures import Figure, at_most, print_figures
from bench.inputs import add_index_and_questions, read_question_texts
from winnow.cli.local.ports import free_ports
from winnow.cli.units.asking import processor_seconds
from winnow.client import AsyncClient
from winnow.errors import WinnowError
from winnow.index_directory import shard_directories
from winnow.packaged import default_bundle

MAX_RATIO = 1.01
_HOST = "127.0.0.1"
_READY_SECONDS = 180.0


class Pair:
    """A front and a content node of one checkout, in processes."""

    def __init__(self, checkout: Path, shard: Path, bundle: Path, stack: ExitStack) -> None:
        """`stack` ends the processes."""
        node, self.address = (f"{_HOST}:{port}" for port in free_ports(2))
        shared = ("--bundle", str(bundle), "--log-level", "error", "--log-format", "text")
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._children = [
            subprocess.Popen(
                [sys.executable, "-m", "winnow", *words, *shared], cwd=checkout, env=environment
            )
            for words in (
                ("node", "--shard", str(shard), "--listen", node),
                ("front", "--shards", node, "--listen", self.address, "--answer-cache-mb", "0"),
            )
        ]
        for child in self._children:
            stack.callback(child.wait, 30)
            stack.callback(child.terminate)
        self.turns: list[float] = []
        """Processor seconds of each turn."""

    def processor_seconds(self) -> float:
        """Returns the processor time of both processes."""
        return sum(processor_seconds(child.pid) for child in self._children)

    async def wait_ready(self, client: AsyncClient, question: str) -> None:
        """Waits until a question is answered."""
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                try:
                    await client.ask(question, timeout=10.0)
                    return
                except WinnowError:
                    await asyncio.sleep(0.5)

    async def ask(self, client: AsyncClient, questions: Sequence[str]) -> None:
        """Asks the questions of a turn, one after the other."""
        before = self.processor_seconds()
        for each in questions:
            await client.ask(each, fresh=True, timeout=30.0)
        self.turns.append(self.processor_seconds() - before)


async def compare(options: argparse.Namespace, stack: ExitStack) -> list[Figure]:
    """Asks both pairs in turns; returns the figures."""
    (shard,) = shard_directories(options.index)
    checkouts = {"before": options.before.resolve(), "now": options.now.resolve()}
    pairs = {
        name: Pair(each, shard.resolve(), options.bundle.resolve(), stack)
        for name, each in checkouts.items()
    }
    questions = read_question_texts(options.questions, 1_000)
    rng = random.Random(options.seed)
    async with (
        AsyncClient(pairs["before"].address) as before,
        AsyncClient(pairs["now"].address) as now,
    ):
        clients = {"before": before, "now": now}
        for name, pair in pairs.items():
            await pair.wait_ready(clients[name], questions[0])
            await pair.ask(clients[name], questions[: options.turn])  # warms up
            pair.turns.clear()
        for number in range(options.rounds):
            chosen = rng.choices(questions, k=options.turn)
            for name in list(pairs)[:: -1 if number % 2 else 1]:
                await pairs[name].ask(clients[name], chosen)
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return _figures(pairs, options.turn)


def _figures(pairs: Mapping[str, Pair], turn: int) -> list[Figure]:
    medians = {name: statistics.median(each.turns) for name, each in pairs.items()}
    paired = zip(pairs["now"].turns, pairs["before"].turns, strict=True)
    ratios = sorted(now / before for now, before in paired)
    low, high = (ratios[int(share * (len(ratios) - 1))] for share in (0.25, 0.75))
    ratio = medians["now"] / medians["before"]
    return [
        *(
            Figure("answer", f"processor time, {name}", 1e3 * median / turn, "ms")
            for name, median in medians.items()
        ),
        Figure("answer", "ratio of turns, first quartile", low),
        Figure("answer", "ratio of turns, third quartile", high),
        at_most(Figure("answer", "ratio of the medians", ratio), MAX_RATIO),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench against`."""
    add_index_and_questions(parser)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    own = Path(__file__).parents[1]
    parser.add_argument("--now", type=Path, default=own, help="checkout that is compared with it")
    parser.add_argument(
        "--bundle", type=Path, default=default_bundle(), help="bundle of both checkouts"
    )
    parser.add_argument("--rounds", type=int, default=40, help="number of turns of each pair")
    parser.add_argument("--turn", type=int, default=10, help="questions of a turn")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of questions")


def run(options: argparse.Namespace) -> int:
    """Compares two checkouts; returns the exit code."""
    with ExitStack() as stack:
        return print_figures(asyncio.run(compare(options, stack)), as_json=options.json)
