"""Reads a collection of documents with questions: the folder `files` and files of JSON lines."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.errors import ArtefactError

_QUESTIONS, _FALSE_PREMISES = "questions.jsonl", "false-premises.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about the documents."""

    id: str
    text: str
    answers: tuple[str, ...]
    """Accepted spans of the document, the best first; empty if no document has an answer."""
    sentence: str
    """The sentence, list item or table row that contains the answer; empty without an answer."""
    document: str
    """Path of the document in the folder `files`; empty without an answer."""
    kind: str
    """Kind of the document, such as `html`; empty without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FalsePremise:
    """A question that no document answers: another question with a changed name or number."""

    id: str
    of: str
    """Id of the other question."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Documents and questions."""

    files: Path
    """The folder of documents."""
    questions: tuple[Question, ...]
    false_premises: tuple[FalsePremise, ...]


def read_collection(directory: Path) -> Collection:
    """Reads the questions of a collection. The file of false premises may be missing.

    Raises ArtefactError if a line is not a question, or a false premise has no question.
    """
    questions = tuple(
        Question(
            id=row["id"],
            text=row["question"],
            answers=tuple(row["answers"]),
            sentence=row["sentence"],
            document=row["document"] or "",
            kind=row["kind"] or "",
        )
        for row in _rows(directory / _QUESTIONS)
    )
    false_premises: tuple[FalsePremise, ...] = ()
    if (path := directory / _FALSE_PREMISES).exists():
        false_premises = tuple(
            FalsePremise(id=row["id"], of=row["of"], text=row["question"]) for row in _rows(path)
        )
    known = {each.id for each in questions}
    if unknown := [each.of for each in false_premises if each.of not in known]:
        raise ArtefactError(f"{path} refers to {unknown[0]}, which is not in {_QUESTIONS}")
    return Collection(files=directory / "files", questions=questions, false_premises=false_premises)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ArtefactError(f"{path}, line {number}: {error}") from error
