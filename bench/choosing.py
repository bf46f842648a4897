"""What choosing among passages loses: how often the best answer is right, and how often any is.

    winnow evaluate … --passages-to-read 20 --max-loss 0 --replies dev-nq.jsonl
    python bench/choosing.py --replies dev-nq.jsonl [--passages 10]

Reads what `winnow evaluate --replies` wrote: the best span of every passage that was read.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.stopping import right
from winnow.cli.evaluation.replies import read_whole_replies
from winnow.text.scores import exact_match


def chosen_and_there(row: dict[str, Any], passages: int) -> tuple[bool, bool]:
    """Whether the best of the nearest passages' answers is right, and whether one of them is."""
    ranked = sorted(row["answers"], key=lambda each: (each["hybrid_distance"], each["passage"]))
    read = ranked[:passages]
    there = any(exact_match(each["text"], row["accepted"]) for each in read)
    return right(read, row["accepted"]), there


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=10)
    options = parser.parse_args()
    rows = [row for row in read_whole_replies(options.replies) if not row["failed"]]
    if not rows:
        parser.error(f"{options.replies} has no replies")
    found = [chosen_and_there(row, options.passages) for row in rows]
    chosen, there = (100 * sum(own) / len(found) for own in zip(*found, strict=True))
    figures = {"questions": len(rows), "right": chosen, "there": there, "lost": there - chosen}
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
