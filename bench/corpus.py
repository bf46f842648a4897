"""Writes the passages for measurements on real text.

    python -m bench corpus --data ../shared/data --out var/real.jsonl [--all | --training]

The file has 60 000 Wikipedia passages (every eleventh of wiki2015) and every context of both
development sets. With `--all` it has all 661 243 Wikipedia passages. With `--training` it has all
Wikipedia passages and the contexts of training questions, for `winnow models mine-ranking`.

Every row has the metadata field `part`: contexts have 0, and Wikipedia passages 0 to 9 in turn. So
`winnow evaluate --where 'part < 3'` measures an index of about three tenths of the passages.
"""

import argparse
import json
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory

_WIKIPEDIA_STRIDE, _MAX_WIKIPEDIA_PASSAGES = 11, 60_000
_PARTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench corpus`."""
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="directory of the data sets"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("var/real.jsonl"), help="file to write the passages to"
    )
    parser.add_argument("--every", type=int, default=1, help="keep every n-th Wikipedia passage")
    parser.add_argument("--all", action="store_true", help="keep all Wikipedia passages")
    parser.add_argument(
        "--training",
        action="store_true",
        help="write the gold passages of the training questions, and all of Wikipedia",
    )


def run(options: argparse.Namespace) -> int:
    """Writes the file; returns the exit code."""
    data = DataDirectory(options.data)
    everything = options.all or options.training
    stride, limit = (1, None) if everything else (_WIKIPEDIA_STRIDE, _MAX_WIKIPEDIA_PASSAGES)
    wikipedia = {f"wiki-{n}": p for n, p in enumerate(data.wikipedia(stride)[:limit])}
    wikipedia = dict(list(wikipedia.items())[:: options.every])
    parts = {identifier: n % _PARTS for n, identifier in enumerate(wikipedia)}
    passages = wikipedia.copy()
    questions = {name: data.development(name) for name in DEVELOPMENT}
    if options.training:
        questions = {"training": data.gold()}
    for name, rows in questions.items():
        contexts = dict.fromkeys(q.gold for q in rows if q.gold is not None)
        passages |= {f"{name}-{n}": gold for n, gold in enumerate(contexts)}
    with options.out.open("w", encoding="utf-8") as file:
        for identifier, passage in passages.items():
            metadata = {"part": parts.get(identifier, 0)}
            row = {
                "id": identifier,
                "title": passage.title,
                "text": passage.text,
                "metadata": metadata,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    report = {"file": str(options.out), "passages": len(passages)}
    print(json.dumps(report) if options.json else f"{options.out}: {len(passages)} passages")
    return 0
