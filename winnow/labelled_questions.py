"""Reads files of questions with accepted answers: JSON lines, plain or compressed."""

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.errors import ArtefactError
from winnow.files.compressed import open_bytes
from winnow.files.json_lines import describe_json_error
from winnow.passages.validation import is_unicode
from winnow.quoting import many


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and its accepted answers."""

    question: str
    answers: tuple[str, ...]
    context: str | None = None
    """The passage with the answer, if known."""
    sentence: str = ""
    """The sentence with the answer; empty if it is not known."""


def read_questions(path: Path, limit: int | None = None) -> list[LabelledQuestion]:
    """Reads the first `limit` questions of a file, or all of them.

    Raises ArtefactError if the file cannot be read or a line is not a question; the error names
    the line.
    """
    questions: list[LabelledQuestion] = []
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, start=1):
            if limit is not None and len(questions) >= limit:
                break
            # some editors begin a file with a byte order mark
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                questions.append(_parse(line, f"{path}, line {number}"))
    if not questions:
        raise ArtefactError(f"{path} has no questions")
    return questions


def require_answers(questions: Sequence[LabelledQuestion], path: Path) -> None:
    """Raises ArtefactError if no question of `path` has accepted answers."""
    if not any(each.answers for each in questions):
        raise ArtefactError(
            f"none of {many(len(questions), 'question')} of {path} has answers: list the accepted "
            "answers under `answers`"
        )


def _parse(line: bytes, location: str) -> LabelledQuestion:
    try:
        row: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ArtefactError(f"{location}: invalid UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{location}: {describe_json_error(error)}") from error
    question = row.get("question") if isinstance(row, dict) else None
    answers = row.get("answers", []) if isinstance(row, dict) else []
    if not isinstance(question, str) or not question.strip():
        raise ArtefactError(f"{location}: `question` must be a string that is not blank")
    if not is_unicode(question):
        raise ArtefactError(f"{location}: lone surrogate in the question, not valid Unicode")
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise ArtefactError(f"{location}: `answers` must be a list of strings")
    accepted = tuple(answer for answer in answers if answer.strip())
    context, sentence = row.get("context"), row.get("sentence")
    return LabelledQuestion(
        question,
        accepted,
        context if isinstance(context, str) else None,
        sentence if isinstance(sentence, str) else "",
    )
