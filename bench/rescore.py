"""The accuracy curve that other score weights would have given, without asking again.

    winnow evaluate … --passages-to-read 20 --max-loss 0 --replies dev-nq.jsonl
    python bench/rescore.py --replies dev-nq.jsonl [--bundle DIR] [--json]

Reads what `winnow evaluate --replies` wrote and ranks the answers anew by the weights. Exact for
passages of one window; in longer ones the span chosen by the old weights stays.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from winnow.bundle import default_bundle, read_manifest
from winnow.bundle.manifest import ScoreEntry
from winnow.cli.evaluation.replies import read_whole_replies
from winnow.content_node.reader.reader import combine
from winnow.text.scores import exact_match, f1

STEPS = (1, 2, 5, 10, 20)


def curve(rows: list[dict[str, Any]], weights: ScoreEntry) -> dict[str, dict[str, float]]:
    found = {}
    for step in STEPS:
        matches, overlaps = [], []
        for row in rows:
            near = sorted(row["answers"], key=lambda a: (a["hybrid_distance"], a["passage"]))[:step]
            said = max(near, key=lambda a: score(weights, a))["text"] if near else ""
            matches.append(exact_match(said, row["accepted"]))
            overlaps.append(f1(said, row["accepted"]))
        found[str(step)] = {
            "em": round(100 * sum(matches) / len(rows), 2),
            "f1": round(100 * sum(overlaps) / len(rows), 2),
        }
    return found


def score(weights: ScoreEntry, answer: dict[str, Any]) -> float:
    return combine(weights, answer["relevance"], answer["span_score"], answer["distance"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--bundle", type=Path, default=default_bundle())
    options = parser.parse_args()
    rows = read_whole_replies(options.replies)
    print(json.dumps(curve(rows, read_manifest(options.bundle).score), indent=2))


if __name__ == "__main__":
    main()
