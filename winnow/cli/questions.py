"""Files of questions with their accepted answers: JSON lines, plain or compressed."""

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.errors import ArtefactError
from winnow.files.compressed import open_bytes
from winnow.files.json_lines import not_json
from winnow.passages.validation import is_unicode
from winnow.quoting import many


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, the answers that count as right, and the passage that holds them, if known."""

    question: str
    answers: tuple[str, ...]
    context: str | None = None


def read_questions(path: Path, limit: int | None = None) -> list[AskedQuestion]:
    """The first `limit` questions of `path`, or all.

    Raises ArtefactError, which names the line, if the file cannot be read or a line is no question.
    """
    found: list[AskedQuestion] = []
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if limit is not None and len(found) >= limit:
                break
            # some editors begin a file with a byte order mark
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                found.append(_question(line, f"{path}, line {number}"))
    if not found:
        raise ArtefactError(f"{path} has no questions")
    return found


def expect_answers(questions: Sequence[AskedQuestion], path: Path) -> None:
    """Raises ArtefactError if no question of `path` has an answer to compare with."""
    if not any(each.answers for each in questions):
        raise ArtefactError(
            f"none of {many(len(questions), 'question')} of {path} has answers: write those that "
            "count as right as a list under `answers`"
        )


def _question(line: bytes, place: str) -> AskedQuestion:
    try:
        row: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ArtefactError(f"{place}: invalid UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{place}: {not_json(error)}") from error
    question = row.get("question") if isinstance(row, dict) else None
    answers = row.get("answers", []) if isinstance(row, dict) else []
    if not isinstance(question, str) or not question.strip():
        raise ArtefactError(f"{place}: no string under question")
    if not is_unicode(question):
        raise ArtefactError(f"{place}: lone surrogate in the question, not valid Unicode")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ArtefactError(f"{place}: answers must be a list of strings")
    accepted = tuple(answer for answer in answers if answer.strip())
    context = row.get("context")
    return AskedQuestion(question, accepted, context if isinstance(context, str) else None)
