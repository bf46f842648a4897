"""What heads on a shared encoder cost.

    python -m bench.heads [--only many,ten,question,swap,cache] [--times 1.0] [--json]

All of it in one run on this machine, in two minutes or so; whatever is compared is measured in
turn. Heads have random weights in the shape of trained ones, which changes no speed; a thousand of
them are published at first, in another minute or two, and kept. Spreads are of five parts of a run.
Exit code 1 if a figure is not what is wanted.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

from bench.heads.cache import cache
from bench.heads.figures import Figure
from bench.heads.many import many
from bench.heads.question import question
from bench.heads.stores import many_heads
from bench.heads.swap import swap
from bench.heads.ten import ten
from winnow.bundle import Bundle, default_bundle, load_bundle
from winnow.telemetry.progress import StageProgress

Row = Callable[[Bundle, Path, float], Awaitable[list[Figure]]]
ROWS: dict[str, Row] = {
    "many": lambda bundle, store, times: many(bundle, store, round(2_000 * times)),
    "ten": lambda bundle, store, times: ten(bundle, store, round(1_000 * times)),
    "question": lambda bundle, store, times: question(bundle, store, round(300 * times)),
    "swap": lambda bundle, _store, times: swap(bundle, round(10_000 * times)),
    "cache": lambda bundle, _store, times: cache(bundle, round(100_000 * times)),
}
_ON_THEIR_OWN = {"swap", "cache"}
"""Rows that need no store of many heads."""


def main() -> None:
    """Prints the table, and what does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--only", default=",".join(ROWS), help=f"Rows, separated by commas: {', '.join(ROWS)}."
    )
    parser.add_argument(
        "--times", type=float, default=1.0, help="Requests, as a multiple of the usual number."
    )
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    found = asyncio.run(_measure(chosen, options.times))
    if options.json:
        print(json.dumps([asdict(figure) for figure in found], indent=2))
    else:
        for figure in found:
            print(line(figure))
    missed = [figure for figure in found if figure.holds is False]
    for figure in missed:
        print(f"not as wanted: {line(figure)}", file=sys.stderr)
    raise SystemExit(1 if missed else 0)


async def _measure(chosen: list[str], times: float) -> list[Figure]:
    bundle, found = load_bundle(default_bundle()), list[Figure]()
    with StageProgress() as progress:
        store = many_heads(bundle, progress) if set(chosen) - _ON_THEIR_OWN else Path()
        for row in chosen:
            progress.say(f"measuring {row}")
            found += await ROWS[row](bundle, store, times)
    return found


def line(figure: Figure) -> str:
    """A figure as people read it."""
    spread = "({:.3g} to {:.3g})".format(*figure.spread) if figure.spread else ""
    wanted = f"wanted: {figure.wanted}" if figure.wanted else ""
    value = f"{figure.value:10.3f}".rstrip("0").rstrip(".") if figure.unit else f"{figure.value:g}"
    return f"{figure.row:9} {figure.what:52} {value:>10} {figure.unit:5} {spread:18} {wanted}"


if __name__ == "__main__":
    main()
