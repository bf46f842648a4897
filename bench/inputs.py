"""The flags that name an index and questions, and the questions themselves."""

import argparse
from pathlib import Path

from winnow.cli.questions import read_questions


def add_index_and_questions(parser: argparse.ArgumentParser) -> None:
    """Adds `--index` and `--questions`, both required."""
    parser.add_argument("--index", type=Path, required=True, help="directory of the index")
    parser.add_argument(
        "--questions", type=Path, required=True, help="JSON lines with `question` (.gz, .zst)"
    )


def questions(path: Path, limit: int | None = None) -> list[str]:
    """Reads the questions of a file; with a limit, at most `limit` of them, evenly spread."""
    found = [each.question for each in read_questions(path)]
    return found if limit is None else found[:: max(len(found) // limit, 1)][:limit]
