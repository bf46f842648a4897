"""Writes the passages for measurements on real text.

    python -m bench corpus --data ../shared/data --out FILE [--all | --training | --held-out]

The file has 60 000 Wikipedia passages (every eleventh of wiki2015) and every context of both
development sets. With `--all` it has all 661 243 Wikipedia passages. With `--training` it has all
Wikipedia passages and the contexts of training questions, for `winnow models mine-ranking`. With
`--held-out` it has the contexts of 846 questions that no model was trained on. `questions.jsonl`
beside it has these questions, for `winnow models calibrate --documents`.

Every row has the metadata field `part`: contexts have 0, and Wikipedia passages 0 to 9 in turn. So
`winnow evaluate --where 'part < 3'` measures an index of about three tenths of the passages.
"""

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from models.data import DEVELOPMENT, DataDirectory, Passage, Question
from models.mining.held_out import exclude_questions, is_held_out
from winnow.text.surroundings import sentence_around

_WIKIPEDIA_STRIDE, _MAX_WIKIPEDIA_PASSAGES = 11, 60_000
_PARTS = 10
_MAX_HELD_OUT = {"nq-qed-train": 500, "squad": 500, "tydiqa-en-train": 250}
"""Maximum number of held-out questions of each source."""
_QUESTIONS = "questions.jsonl"
_SEED = 1


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
    parser.add_argument(
        "--held-out",
        action="store_true",
        help=f"write the gold passages of held-out questions, and the questions to {_QUESTIONS}",
    )


def run(options: argparse.Namespace) -> int:
    """Writes the files; returns the exit code."""
    data = DataDirectory(options.data)
    if options.held_out:
        questions = {"held-out": _held_out(data)}
        _write_questions(questions["held-out"], options.out.with_name(_QUESTIONS))
        wikipedia = {}
    else:
        sets = {name: data.development(name) for name in DEVELOPMENT}
        questions = {"training": data.gold()} if options.training else sets
        wikipedia = _wikipedia(data, options)
    passages = wikipedia.copy()
    for name, rows in questions.items():
        contexts = dict.fromkeys(q.gold for q in rows if q.gold is not None)
        passages |= {f"{name}-{n}": gold for n, gold in enumerate(contexts)}
    _write_passages(passages, wikipedia, options.out)
    report = {"file": str(options.out), "passages": len(passages)}
    print(json.dumps(report) if options.json else f"{options.out}: {len(passages)} passages")
    return 0


def _wikipedia(data: DataDirectory, options: argparse.Namespace) -> dict[str, Passage]:
    everything = options.all or options.training
    stride, limit = (1, None) if everything else (_WIKIPEDIA_STRIDE, _MAX_WIKIPEDIA_PASSAGES)
    passages = {f"wiki-{n}": p for n, p in enumerate(data.wikipedia(stride)[:limit])}
    return dict(list(passages.items())[:: options.every])


def _held_out(data: DataDirectory) -> list[Question]:
    """Returns questions that no model was trained on, and that no development set has."""
    known = [*data.gold(), *data.extra_questions_with_gold()]
    questions = exclude_questions(known, data.all_development())
    generator = random.Random(_SEED)
    drawn: list[Question] = []
    for source, count in _MAX_HELD_OUT.items():
        own = [q for q in questions if q.source == source and q.gold and is_held_out(q.gold)]
        drawn += generator.sample(own, min(count, len(own)))
    return drawn


def _write_passages(
    passages: Mapping[str, Passage], wikipedia: Mapping[str, Passage], out: Path
) -> None:
    parts = {identifier: n % _PARTS for n, identifier in enumerate(wikipedia)}
    with out.open("w", encoding="utf-8") as file:
        for identifier, passage in passages.items():
            metadata = {"part": parts.get(identifier, 0)}
            row = {
                "id": identifier,
                "title": passage.title,
                "text": passage.text,
                "metadata": metadata,
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _write_questions(questions: Sequence[Question], out: Path) -> None:
    """Writes questions with the sentences that contain their answers."""
    with out.open("w", encoding="utf-8") as file:
        for each in questions:
            assert each.gold is not None, "held-out questions have gold passages"
            assert each.answer_start is not None, "the place of the answer is known"
            text, end = each.gold.text, each.answer_start + len(each.answers[0])
            sentence = text[slice(*sentence_around(text, each.answer_start, end))]
            row = {"question": each.text, "answers": each.answers, "sentence": sentence}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
