"""What stopping early costs and saves, for rules of a bundle, without asking again.

    winnow evaluate … --passages-to-read 20 --max-loss 0 --replies dev-nq.jsonl
    python bench/stopping.py --replies dev-nq.jsonl [--bundle DIR] [--passages 10]

Reads what `winnow evaluate --replies` wrote (every passage's answer, score and hybrid distance) and
stops where the front node would.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from winnow.bundle import default_bundle, read_manifest
from winnow.cli.evaluation.replies import read_whole_replies
from winnow.domain.stopping import StoppingRule, wave_ends
from winnow.text.scores import exact_match


def stopped(ranked: list[dict[str, Any]], rule: StoppingRule) -> int:
    """How many of the passages, nearest first, are read."""
    for end in wave_ends(len(ranked), rule.first_look):
        if end == len(ranked):
            break
        best = max(answer["score"] for answer in ranked[:end])
        if rule.safe(best, ranked[0]["hybrid_distance"], ranked[end]["hybrid_distance"]):
            return end
    return len(ranked)


def right(ranked: list[dict[str, Any]], accepted: list[str]) -> bool:
    """Whether the best answer is one of the accepted ones."""
    best = max(ranked, key=lambda answer: answer["score"], default={"text": ""})
    return exact_match(best["text"], accepted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--bundle", type=Path, default=default_bundle())
    parser.add_argument("--passages", type=int, default=10)
    options = parser.parse_args()
    rows = read_whole_replies(options.replies)
    manifest = read_manifest(options.bundle)
    for entry in manifest.stopping:
        rule = manifest.stopping_rule(entry.max_loss)
        lost = read = whole = 0
        for row in rows:
            ranked = sorted(row["answers"], key=lambda a: (a["hybrid_distance"], a["passage"]))
            ranked = ranked[: options.passages]
            end = stopped(ranked, rule) if rule else len(ranked)
            lost += right(ranked, row["accepted"]) - right(ranked[:end], row["accepted"])
            read, whole = read + end, whole + len(ranked)
        print(
            json.dumps(
                {
                    "promised": entry.max_loss,
                    "lost": round(100 * lost / len(rows), 2),
                    "passages_read": round(read / len(rows), 2),
                    "times_fewer": round(whole / read, 2),
                }
            )
        )


if __name__ == "__main__":
    main()
