"""Kills a shard that is written to, again and again, and compares it with a dictionary.

    python -m bench crashes --kills 300

A shard takes several writes at once and is merged. Its process, or that of a merge, is ended as by
kill -9: at a fault point, or at any moment. Then it is started again and compared. Every
acknowledged write must be there. Calls that were not acknowledged must be there in their order,
each as a whole or not at all. Searches by meaning and by words must find what comparing with all
passages finds. Exits with 1 at the first difference.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.crashes.expected import ENCODER, Model, WrongError
from bench.crashes.life import ExpectedShard, first_texts, live, points_in_random_order
from bench.figures import Figure, show
from bench.synthetic import build_shard
from winnow.content_node.merging.names import LIVE, newest_first
from winnow.faultpoints import POINTS

_LIVES = 24
"""Lives of each shard, before another one is built."""
_DERIVED = ("graph.hnsw", "tokens.npy", "postings.npy", "counts.npy")


@dataclass(slots=True, kw_only=True)
class Totals:
    """What was seen so far."""

    kills: Counter[str] = field(default_factory=Counter)
    """Kills by fault point."""
    shards: int = 0
    lives: int = 0
    acknowledged: int = 0
    """Writes."""
    merges: int = 0
    checks: int = 0
    """Comparisons of a shard with the dictionary."""

    def add(self, life: ExpectedShard) -> None:
        """Counts a life."""
        self.kills.update(life.kills)
        self.lives += 1
        self.acknowledged += life.acknowledged
        self.merges += life.merges
        self.checks += life.checks


async def crash_often(
    kills: int,
    seconds: float,
    rng: random.Random,
    report: Callable[[Totals], None],
    calls: int = 14,
) -> Totals:
    """Kills processes until there were `kills` kills, or for `seconds`; raises WrongError."""
    totals, until = Totals(), time.monotonic() + seconds
    points: list[str] = []

    def enough() -> bool:
        return totals.kills.total() >= kills or time.monotonic() >= until

    while not enough():
        totals.shards += 1
        with tempfile.TemporaryDirectory(prefix="winnow-crashes-") as directory:
            texts = first_texts(rng.randint(0, 30), rng)
            passages = [ENCODER.passage(name, text) for name, text in texts.items()]
            shard = build_shard(
                Path(directory), passages, index="crashes", dimension=ENCODER.dimension
            )
            life = ExpectedShard(model=Model({name: (text, None) for name, text in texts.items()}))
            for last in [*[False] * _LIVES, True]:
                if enough() and not last:
                    continue
                # a quarter of the kills come at any moment
                points = points or [
                    *points_in_random_order(POINTS, rng),
                    *[""] * (len(POINTS) // 4),
                ]
                # the last life checks what the one before it left
                point = "" if last else points.pop(rng.randrange(len(points)))
                if point.startswith("repair."):
                    damage(shard, rng)
                    point = f"{point.partition(':')[0]}:1"
                life = await live(shard, life, rng, point, calls)
                totals.add(life)
                report(totals)
    return totals


def damage(shard: Path, rng: random.Random) -> None:
    """Alters a byte of a derived file of the newest generation, which can be made again."""
    directory = shard / LIVE
    names = newest_first(path.name for path in directory.glob("*"))
    if not names:
        return
    path = directory / names[0] / rng.choice(_DERIVED)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def figures(totals: Totals) -> list[Figure]:
    """Returns the counts, and the kills at each point."""
    names = ("shards", "lives", "acknowledged", "merges", "checks")
    return [
        *(Figure("crashes", name, getattr(totals, name)) for name in names),
        Figure("crashes", "kills", totals.kills.total()),
        *(Figure("kills at", point, count) for point, count in sorted(totals.kills.items())),
        Figure("crashes", "writes lost or half stored", 0, wanted="0", holds=True),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench crashes`."""
    parser.add_argument("--kills", type=int, default=300, help="processes to kill")
    parser.add_argument(
        "--seconds", type=float, default=1_800.0, help="stop after this many seconds"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random histories")


def run(options: argparse.Namespace) -> int:
    """Kills processes and prints the counts; returns the exit code."""
    printed = time.monotonic()

    def report(totals: Totals) -> None:
        nonlocal printed
        if time.monotonic() - printed > 10:
            printed = time.monotonic()
            print(f"{totals.kills.total()} kills", file=sys.stderr, flush=True)

    rng = random.Random(options.seed)
    try:
        totals = asyncio.run(crash_often(options.kills, options.seconds, rng, report))
    except WrongError as error:
        print(f"wrong with --seed {options.seed}: {error}", file=sys.stderr)
        return 1
    return show(figures(totals), as_json=options.json)
