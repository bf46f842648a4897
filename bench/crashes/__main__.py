"""Kills a shard that is written to, again and again, and compares it with a dictionary.

    python -m bench.crashes --kills 300

A shard takes writes side by side and is merged; its process, or that of a merge, ends at a fault
point or at any moment as by kill -9. Then it is started again and compared: every acknowledged
write is there, calls that were not acknowledged are there as a whole or not at all, in their order,
and searches by meaning and by words find what comparing with all passages finds.
Exits 1 at the first thing that is wrong.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import fields

from bench.common.arguments import parser
from bench.crashes.checking import WrongError
from bench.crashes.tries import Shown, try_often


def table(shown: Shown) -> str:
    """What was seen, as Markdown."""
    rows = [f"| {point} | {count} |" for point, count in sorted(shown.kills.items())]
    summary = (
        f"{shown.kills.total()} kills in {shown.lives} lives of {shown.shards} shards; "
        f"{shown.acknowledged:,} writes acknowledged, {shown.merges} merges, {shown.checks} "
        "comparisons; nothing lost, nothing half there"
    )
    return "\n".join([summary, "", "| killed at | times |", "|---|---|", *rows])


def main() -> int:
    arguments = parser("crashes", __doc__)
    arguments.add_argument("--kills", type=int, default=300, help="Processes to kill.")
    arguments.add_argument("--seconds", type=float, default=1_800.0, help="Longest time.")
    arguments.add_argument("--seed", type=int, default=1, help="Of the histories.")
    given = arguments.parse_args()
    said = time.monotonic()

    def tell(shown: Shown) -> None:
        nonlocal said
        if time.monotonic() - said > 10:
            said = time.monotonic()
            print(f"{shown.kills.total()} kills", file=sys.stderr, flush=True)

    try:
        shown = asyncio.run(try_often(given.kills, given.seconds, random.Random(given.seed), tell))
    except WrongError as error:
        print(f"wrong with --seed {given.seed}: {error}")
        return 1
    plain = {each.name: getattr(shown, each.name) for each in fields(shown)}
    print(json.dumps(plain, indent=2) if given.json else table(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
