"""Measures what heads on a shared encoder cost.

    python -m bench heads [--only many,ten,question,swap,cache] [--times 1.0] [--json]

Measures all parts in one run on this machine, in about two minutes. Variants are interleaved. Heads
have the shape of trained heads but random weights, which does not change their speed. The first run
publishes a thousand heads to a local store, which takes another minute or two. Later runs use that
store. A spread is the lowest and the highest value in five consecutive blocks of a run. Exits with
1 if a figure misses its target.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.figures import Figure, print_figures
from bench.heads.cache import measure_cache
from bench.heads.many import measure_many, measure_ten
from bench.heads.question import measure_question
from bench.heads.swap import measure_swap
from bench.heads.synthetic_heads import open_store_of_many
from winnow.bundle import Bundle, load_bundle
from winnow.packaged import default_bundle
from winnow.telemetry.progress import StageProgress

Part = Callable[[Bundle, Path, float], Awaitable[list[Figure]]]
PARTS: dict[str, Part] = {
    "many": lambda bundle, store, times: measure_many(bundle, store, round(2_000 * times)),
    "ten": lambda bundle, store, times: measure_ten(bundle, store, round(1_000 * times)),
    "question": lambda bundle, store, times: measure_question(bundle, store, round(300 * times)),
    "swap": lambda bundle, _store, times: measure_swap(bundle, round(10_000 * times)),
    "cache": lambda bundle, _store, times: measure_cache(bundle, round(100_000 * times)),
}
_PARTS_WITHOUT_STORE = {"swap", "cache"}
"""Parts that do not use the store of a thousand heads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench heads`."""
    parser.add_argument(
        "--only",
        type=_parse_parts,
        default=list(PARTS),
        help=f"parts to measure, of {','.join(PARTS)}",
    )
    parser.add_argument(
        "--times",
        type=float,
        default=1.0,
        help="factor for the number of requests of every part",
    )


def run(options: argparse.Namespace) -> int:
    """Measures the chosen parts; returns the exit code."""
    return print_figures(asyncio.run(_measure(options.only, options.times)), as_json=options.json)


def _parse_parts(text: str) -> list[str]:
    parts = text.split(",")
    if unknown := set(parts) - set(PARTS):
        choices = ", ".join(PARTS)
        raise argparse.ArgumentTypeError(
            f"unknown part {', '.join(sorted(unknown))}: choose from {choices}"
        )
    return parts


async def _measure(parts: list[str], times: float) -> list[Figure]:
    bundle, figures = load_bundle(default_bundle()), list[Figure]()
    with StageProgress() as progress:
        store = (
            open_store_of_many(bundle, progress) if set(parts) - _PARTS_WITHOUT_STORE else Path()
        )
        for part in parts:
            progress.say(f"measuring {part}")
            figures += await PARTS[part](bundle, store, times)
    return figures
