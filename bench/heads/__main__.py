"""What heads on a shared encoder cost.

    python -m bench.heads [--only many,ten,question,swap,cache,killed,hung] [--times 1.0] [--json]

All of it in one run on this machine, in two minutes or so; whatever is compared is measured in
turn. Heads have random weights in the shape of trained ones, which changes no speed; a thousand of
them are published at first, in another minute or two, and kept. Spreads are of five parts of a run.
Exit code 1 if a figure is not what is wanted.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.common.arguments import parser
from bench.common.figures import Figure, show
from bench.heads.cache import cache
from bench.heads.many import many
from bench.heads.question import question
from bench.heads.servers import lost
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
    "killed": lambda bundle, _store, times: lost(bundle, "killed", signal.SIGKILL, 30 * times),
    "hung": lambda bundle, _store, times: lost(bundle, "hung", signal.SIGSTOP, 30 * times),
}
_USUAL = [row for row in ROWS if row not in ("killed", "hung")]
_ON_THEIR_OWN = {"swap", "cache", "killed", "hung"}
"""Rows that need no store of many heads."""


def main() -> int:
    """Measures the rows that were asked for; the exit code."""
    arguments = parser("heads", __doc__)
    arguments.add_argument("--only", default=",".join(_USUAL), help=f"of {','.join(ROWS)}")
    arguments.add_argument("--times", type=float, default=1.0, help="the usual number of requests")
    options = arguments.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(ROWS):
        arguments.error(f"unknown row {', '.join(sorted(unknown))}: choose of {', '.join(ROWS)}")
    return show(asyncio.run(_measure(chosen, options.times)), as_json=options.json)


async def _measure(chosen: list[str], times: float) -> list[Figure]:
    bundle, found = load_bundle(default_bundle()), list[Figure]()
    with StageProgress() as progress:
        store = many_heads(bundle, progress) if set(chosen) - _ON_THEIR_OWN else Path()
        for row in chosen:
            progress.say(f"measuring {row}")
            found += await ROWS[row](bundle, store, times)
    return found


if __name__ == "__main__":
    sys.exit(main())
