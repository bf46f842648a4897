"""Adds the flags `--index` and `--questions`, and reads the file of questions."""

import argparse
from pathlib import Path

from winnow.labelled_questions import read_questions


def add_index_and_questions(parser: argparse.ArgumentParser) -> None:
    """Adds `--index` and `--questions`, both required."""
    parser.add_argument("--index", type=Path, required=True, help="directory of the index")
    parser.add_argument(
        "--questions", type=Path, required=True, help="JSON lines with `question` (.gz, .zst)"
    )


def read_question_texts(path: Path, limit: int | None = None) -> list[str]:
    """Reads the questions of a file, or `limit` evenly spread questions."""
    texts = [each.question for each in read_questions(path)]
    return texts if limit is None else texts[:: max(len(texts) // limit, 1)][:limit]
