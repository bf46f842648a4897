"""Kills a shard's process repeatedly while the shard takes writes, and checks its contents.

    python -m bench crashes --kills 300

A shard takes concurrent writes and is merged. SIGKILL ends the process of the shard or of a merge,
at a fault point or at a random moment. Then the shard is started again and checked. It must have
every acknowledged write. It may have the first of the unacknowledged calls, in order and each as a
whole. Searches by vector and by words must find the same passages as an exhaustive search. Exits
with 1 at the first difference.
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

from bench.crashes.expected import ENCODER, ExpectedShard, MismatchError
from bench.crashes.run_cycle import Life, initial_texts, run_life, shuffled_fault_points
from bench.figures import Figure, print_figures
from bench.synthetic import build_shard
from winnow.content_node.merging.names import LIVE, newest_first
from winnow.faultpoints import POINTS

_POINTS = [point for point in POINTS if not point.startswith(("copy.", "custody."))]
"""All fault points except the points that only a moving shard reaches."""
_LIVES_PER_SHARD = 24
"""Number of times a shard is killed before another shard is built."""
_DERIVED_FILES = ("graph.hnsw", "tokens.npy", "postings.npy", "counts.npy")


@dataclass(slots=True, kw_only=True)
class Totals:
    """Totals of all processes so far. Each process ends with a kill."""

    kills: Counter[str] = field(default_factory=Counter)
    """Kills by fault point."""
    shards: int = 0
    lives: int = 0
    acknowledged: int = 0
    """Number of acknowledged writes."""
    merges: int = 0
    checks: int = 0
    """Number of comparisons of a shard with its expected contents."""

    def add(self, life: Life) -> None:
        """Adds the counts of a life."""
        self.kills.update(life.kills)
        self.lives += 1
        self.acknowledged += life.acknowledged
        self.merges += life.merges
        self.checks += life.checks


async def run_crashes(
    kills: int,
    seconds: float,
    rng: random.Random,
    report: Callable[[Totals], None],
    calls: int = 14,
) -> Totals:
    """Kills processes `kills` times, or until `seconds` are over.

    Raises:
        MismatchError: a shard lost an acknowledged write, or its searches are wrong.

    """
    totals, deadline = Totals(), time.monotonic() + seconds
    points: list[str] = []

    def is_done() -> bool:
        return totals.kills.total() >= kills or time.monotonic() >= deadline

    while not is_done():
        totals.shards += 1
        with tempfile.TemporaryDirectory(prefix="winnow-crashes-") as directory:
            texts = initial_texts(rng.randint(0, 30), rng)
            passages = [ENCODER.passage(name, text) for name, text in texts.items()]
            shard = build_shard(
                Path(directory), passages, index="crashes", dimension=ENCODER.dimension
            )
            life = Life(
                expected=ExpectedShard({name: (text, None) for name, text in texts.items()})
            )
            for is_last in [*[False] * _LIVES_PER_SHARD, True]:
                if is_done() and not is_last:
                    continue
                # a fifth of the kills come at a random moment
                points = points or [
                    *shuffled_fault_points(_POINTS, rng),
                    *[""] * (len(_POINTS) // 4),
                ]
                # the last life only checks what the life before it stored
                point = "" if is_last else points.pop(rng.randrange(len(points)))
                if point.startswith("repair."):
                    corrupt_derived_file(shard, rng)
                    point = f"{point.partition(':')[0]}:1"
                life = await run_life(shard, life, rng, point, calls)
                totals.add(life)
                report(totals)
    return totals


def corrupt_derived_file(shard: Path, rng: random.Random) -> None:
    """Flips a bit in a derived file of the newest generation; the node can rebuild the file."""
    directory = shard / LIVE
    names = newest_first(path.name for path in directory.glob("*"))
    if not names:
        return
    path = directory / names[0] / rng.choice(_DERIVED_FILES)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def crash_figures(totals: Totals) -> list[Figure]:
    """Returns the counts, and the number of kills at each fault point."""
    names = ("shards", "lives", "acknowledged", "merges", "checks")
    return [
        *(Figure("crashes", name, getattr(totals, name)) for name in names),
        Figure("crashes", "kills", totals.kills.total()),
        *(Figure("kills at", point, count) for point, count in sorted(totals.kills.items())),
        Figure("crashes", "writes lost or half stored", 0, target="0", holds=True),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench crashes`."""
    parser.add_argument("--kills", type=int, default=300, help="number of kills")
    parser.add_argument(
        "--seconds", type=float, default=1_800.0, help="stop after this many seconds"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random writes and kills")


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
        totals = asyncio.run(run_crashes(options.kills, options.seconds, rng, report))
    except MismatchError as error:
        print(f"check failed with --seed {options.seed}: {error}", file=sys.stderr)
        return 1
    return print_figures(crash_figures(totals), as_json=options.json)
