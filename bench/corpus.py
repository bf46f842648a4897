"""Writes the corpus that real-text figures are measured on.

    python bench/corpus.py --data ../shared/data --out var/real.jsonl [--all | --training]

60 000 Wikipedia passages (every eleventh of wiki2015), or all 661 243, and every context of both
development sets. With `--training`, all Wikipedia passages and the contexts of training questions:
what `winnow models mine-ranking` retrieves from.
"""

import argparse
import json
from pathlib import Path

from models.data.directory import DEVELOPMENT, DataDirectory

STRIDE, WIKIPEDIA = 11, 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("var/real.jsonl"))
    parser.add_argument(
        "--every", type=int, default=1, help="keep every n-th of the Wikipedia ones"
    )
    parser.add_argument("--all", action="store_true", help="all Wikipedia passages")
    parser.add_argument("--training", action="store_true", help="for mining, not for measuring")
    options = parser.parse_args()
    data = DataDirectory(options.data)
    wikipedia = (
        data.wikipedia(1) if options.all or options.training else data.wikipedia(STRIDE)[:WIKIPEDIA]
    )
    passages = {f"wiki-{n}": p for n, p in enumerate(wikipedia)}
    passages = dict(list(passages.items())[:: options.every])
    asked = {name: data.development(name) for name in DEVELOPMENT}
    if options.training:
        asked = {"training": data.gold()}
    for name, questions in asked.items():
        golds = dict.fromkeys(q.gold for q in questions if q.gold is not None)
        passages |= {f"{name}-{n}": gold for n, gold in enumerate(golds)}
    with options.out.open("w", encoding="utf-8") as file:
        for identifier, passage in passages.items():
            row = {"id": identifier, "title": passage.title, "text": passage.text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{options.out}: {len(passages)} passages")


if __name__ == "__main__":
    main()
