"""Files of questions about technical documents, and of the documents' passages."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from models.data import DataError, Passage, Question

PEOPLE, RULES, CLOZES = "documents-people", "documents-rules", "documents-cloze"
"""Names of the sources of questions about documents."""
_QUESTIONS, _PASSAGES = "questions.jsonl", "passages.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuestion:
    """A question about a passage of a document. Field names are keys on disk."""

    source: str
    title: str
    context: str
    question: str
    answers: tuple[str, ...]
    """Accepted answers; none if the passage does not answer the question."""
    answer_start: int | None
    held_out: bool

    @property
    def as_question(self) -> Question:
        """The question with its passage."""
        return Question(
            text=self.question,
            answers=self.answers,
            source=self.source,
            gold=Passage(self.title, self.context),
            answer_start=self.answer_start,
        )


def save_document_questions(
    directory: Path, questions: Sequence[DocumentQuestion], passages: Mapping[Passage, bool]
) -> None:
    """Writes questions, and passages with whether each is held out."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / _QUESTIONS, map(asdict, questions))
    _write(
        directory / _PASSAGES,
        ({**asdict(each), "held_out": held} for each, held in passages.items()),
    )


def read_document_questions(directory: Path) -> list[DocumentQuestion]:
    """Reads the questions that `save_document_questions` wrote."""
    rows = _read(directory / _QUESTIONS)
    return [DocumentQuestion(**{**row, "answers": tuple(row["answers"])}) for row in rows]


def read_document_passages(directory: Path) -> dict[Passage, bool]:
    """Reads passages, and whether each is held out."""
    rows = _read(directory / _PASSAGES)
    return {Passage(row["title"], row["text"]): row["held_out"] for row in rows}


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        raise DataError(f"{path} is missing: run `winnow models ask-documents` first")
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
