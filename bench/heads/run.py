"""What heads on a shared encoder cost.

    python -m bench heads [--only many,ten,question,swap,cache,killed,hung] [--times 1.0] [--json]

Measures everything in one run on this machine, in about two minutes; variants are interleaved.
Heads have random weights in the shape of trained ones, which changes no speed. A thousand of them
are published first, in another minute or two, and kept. Spreads are of five parts of a run. Exits
with 1 if a figure misses its target.
"""

import argparse
import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.figures import Figure, show
from bench.heads.cache import cache
from bench.heads.many import many, ten
from bench.heads.question import question
from bench.heads.servers import lost
from bench.heads.swap import swap
from bench.heads.synthetic_heads import many_heads
from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.telemetry.progress import StageProgress

Row = Callable[[Bundle, Path, float], Awaitable[list[Figure]]]
ROWS: dict[str, Row] = {
    "many": lambda bundle, store, times: many(bundle, store, round(2_000 * times)),
    "ten": lambda bundle, store, times: ten(bundle, store, round(1_000 * times)),
    "question": lambda bundle, store, times: question(bundle, store, round(300 * times)),
    "swap": lambda bundle, _store, times: swap(bundle, round(10_000 * times)),
    "cache": lambda bundle, _store, times: cache(bundle, round(100_000 * times)),
    "killed": lambda bundle, _store, times: lost(bundle, "killed", signal.SIGKILL, 30 * times),
    "hung": lambda bundle, _store, times: lost(bundle, "hung", signal.SIGSTOP, 30 * times),
}
_USUAL = [row for row in ROWS if row not in ("killed", "hung")]
_WITHOUT_STORE = {"swap", "cache", "killed", "hung"}
"""Rows that need no store of many heads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench heads`."""
    parser.add_argument("--only", type=_rows, default=_USUAL, help=f"of {','.join(ROWS)}")
    parser.add_argument("--times", type=float, default=1.0, help="factor of the number of requests")


def run(options: argparse.Namespace) -> int:
    """Measures the chosen rows; returns the exit code."""
    return show(asyncio.run(_measure(options.only, options.times)), as_json=options.json)


def _rows(text: str) -> list[str]:
    chosen = text.split(",")
    if unknown := set(chosen) - set(ROWS):
        known = ", ".join(ROWS)
        raise argparse.ArgumentTypeError(
            f"unknown row {', '.join(sorted(unknown))}: choose from {known}"
        )
    return chosen


async def _measure(chosen: list[str], times: float) -> list[Figure]:
    bundle, found = load_bundle(default_bundle()), list[Figure]()
    with StageProgress() as progress:
        store = many_heads(bundle, progress) if set(chosen) - _WITHOUT_STORE else Path()
        for row in chosen:
            progress.say(f"measuring {row}")
            found += await ROWS[row](bundle, store, times)
    return found
