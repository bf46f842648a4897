"""Files of questions with their accepted answers: JSON lines, plain or compressed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.compressed import open_bytes
from winnow.errors import ArtefactError


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, the answers that count as right, and the passage that holds them, if known."""

    question: str
    answers: tuple[str, ...]
    context: str | None = None


def read_questions(path: Path, limit: int | None = None) -> list[AskedQuestion]:
    """The first `limit` questions of `path`, or all.

    Raises:
        ArtefactError: the file cannot be read, or a line is not a question; it is named.

    """
    found: list[AskedQuestion] = []
    try:
        with open_bytes(path) as stream:
            for number, line in enumerate(stream, start=1):
                if limit is not None and len(found) >= limit:
                    break
                if line.strip():
                    found.append(_question(line.decode("utf-8"), f"{path}, line {number}"))
    except UnicodeDecodeError as error:
        raise ArtefactError(f"cannot read {path}: {error}") from error
    if not found:
        raise ArtefactError(f"{path} has no questions")
    return found


def _question(line: str, place: str) -> AskedQuestion:
    try:
        row: Any = json.loads(line)
    except ValueError as error:
        raise ArtefactError(f"{place}: not JSON: {error}") from error
    question = row.get("question") if isinstance(row, dict) else None
    answers = row.get("answers", []) if isinstance(row, dict) else []
    if not isinstance(question, str) or not question.strip():
        raise ArtefactError(f"{place}: no string under question")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ArtefactError(f"{place}: answers must be a list of strings")
    context = row.get("context")
    return AskedQuestion(question, tuple(answers), context if isinstance(context, str) else None)
