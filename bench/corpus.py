"""Writes the passages that figures on real text are measured on.

    python -m bench corpus --data ../shared/data --out var/real.jsonl [--all | --training]

The file holds 60 000 Wikipedia passages (every eleventh of wiki2015), or all 661 243, and every
context of both development sets. With `--training` it holds all Wikipedia passages and the contexts
of training questions: `winnow models mine-ranking` retrieves from these.
"""

import argparse
import json
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory

STRIDE, WIKIPEDIA = 11, 60_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench corpus`."""
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("var/real.jsonl"))
    parser.add_argument("--every", type=int, default=1, help="keep every n-th Wikipedia passage")
    parser.add_argument("--all", action="store_true", help="keep all Wikipedia passages")
    parser.add_argument("--training", action="store_true", help="for mining, not for measuring")


def run(options: argparse.Namespace) -> int:
    """Writes the file."""
    data = DataDirectory(options.data)
    everything = options.all or options.training
    wikipedia = data.wikipedia(1) if everything else data.wikipedia(STRIDE)[:WIKIPEDIA]
    passages = {f"wiki-{n}": p for n, p in enumerate(wikipedia)}
    passages = dict(list(passages.items())[:: options.every])
    questions = {name: data.development(name) for name in DEVELOPMENT}
    if options.training:
        questions = {"training": data.gold()}
    for name, rows in questions.items():
        golds = dict.fromkeys(q.gold for q in rows if q.gold is not None)
        passages |= {f"{name}-{n}": gold for n, gold in enumerate(golds)}
    with options.out.open("w", encoding="utf-8") as file:
        for identifier, passage in passages.items():
            row = {"id": identifier, "title": passage.title, "text": passage.text}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    told = {"file": str(options.out), "passages": len(passages)}
    print(json.dumps(told) if options.json else f"{options.out}: {len(passages)} passages")
    return 0
