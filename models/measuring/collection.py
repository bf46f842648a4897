"""Reads questions about an index of documents.

A collection is a directory with an index in `index`, and with `questions.jsonl`. Each line has a
`question`, its accepted `answers` (empty if no document answers it), and the `sentence` that
contains the answer. `bench/documents/questions.jsonl` has the same form.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from models.data import DataError
from models.measuring.judging import JudgedQuestion

_INDEX, _QUESTIONS = "index", "questions.jsonl"


def index_of(collection: Path) -> Path:
    """Returns the index of a collection."""
    return collection / _INDEX


def read_collection(collection: Path) -> list[JudgedQuestion]:
    """Reads the questions of a collection.

    Raises:
        DataError: there are no questions, or a line is not a question.

    """
    path = collection / _QUESTIONS
    if not path.is_file():
        raise DataError(
            f"{path} is missing: set --documents to a directory with index and {_QUESTIONS}"
        )
    return list(_read(path))


def _read(path: Path) -> Iterator[JudgedQuestion]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            yield JudgedQuestion(
                text=row["question"],
                answers=tuple(row["answers"]),
                sentence=row["sentence"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}, line {number} is not a question: {error!r}") from error
