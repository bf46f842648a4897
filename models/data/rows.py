"""Reading passages and questions from files.

Knows the row formats of public data: DPR's TSV and JSON lines, plain or zstandard. Knows nothing
of what they are used for.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.errors import WinnowError
from winnow.files.compressed import open_bytes


class DataError(WinnowError):
    """A data file is missing or is not what was expected."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A title and a text that answers may be found in."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its accepted answers, and the passage that answers it where one is given."""

    text: str
    answers: tuple[str, ...]
    source: str
    gold: Passage | None = None
    answer_start: int | None = None


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, unpacked if its name ends in `.gz` or `.zst`.

    Raises:
        DataError: there is no such file.

    """
    if not path.is_file():
        raise DataError(f"no file {path}: point --data at the directory that holds it")
    with open_bytes(path) as stream:
        for line in stream:
            yield line.decode("utf-8")


def read_questions(path: Path) -> list[Question]:
    """Questions of a JSON lines file, with or without passages."""
    return [_question(json.loads(line)) for line in lines(path)]


def read_passages(path: Path, keep_every: int = 1) -> Iterator[Passage]:
    """Every `keep_every`-th passage of a DPR TSV file (`id`, `text`, `title`)."""
    for row, line in enumerate(lines(path)):
        if row % keep_every == 0:
            _, text, title = line.rstrip("\n").split("\t")
            yield Passage(title, text)


def _question(row: dict[str, Any]) -> Question:
    answers = tuple(row["answers"]) if "answers" in row else (row["answer"],)
    gold = Passage(row.get("title", ""), row["context"]) if "context" in row else None
    source = row.get("source", "")
    return Question(row["question"], answers, source, gold, row.get("answer_start"))
