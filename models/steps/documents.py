"""Makes training questions about documents, by rules and from people's questions.

People's questions are JSON lines with `question`, `answers` (empty if the passage does not answer
it), `passage`, `sentence` (which contains the answer) and `document` (path of the document).
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from zlib import crc32

from models.data import DataError, Passage, find_answer
from models.mining.document_files import PEOPLE, DocumentQuestion, save_document_questions
from models.mining.manuals import read_manual
from models.mining.written import titled_passages, written_questions
from winnow.documents.conversion.converter import DocumentConverter
from winnow.documents.document import Document
from winnow.documents.passages import HEADING_SEPARATOR

_MANUAL = ".man"
"""Extension of a manual page as `man` shows it."""
_HELD_OUT_ONE_IN = 10
_FIELDS = {"question", "answers", "passage", "sentence", "document"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentCounts:
    """Counts of passages and of questions by source."""

    passages: int
    questions: Mapping[str, int]
    unplaced: int
    """Number of people's questions whose passage lacks the answer. They are left out."""


def make_document_questions(
    folders: Sequence[Path], people: Sequence[Path], out: Path
) -> DocumentCounts:
    """Writes passages of documents, and questions about them.

    Args:
        folders: folders of documents for questions by rules.
        people: files of people's questions.
        out: directory to write questions and passages to.

    """
    generator = random.Random(0)
    asked = {str(row["question"]): _place(row) for row in _rows(people)}
    questions = [each for each in asked.values() if each is not None]
    passages = {Passage(each.title, each.context): each.held_out for each in questions}
    for name, document in _documents(folders):
        held_out = _is_held_out(name)
        cut = titled_passages(document, name)
        passages |= {passage: held_out for _, passage in cut}
        questions += [
            DocumentQuestion(
                source=each.source,
                title=each.passage.title,
                context=each.passage.text,
                question=each.question,
                answers=each.answers,
                answer_start=each.start,
                held_out=held_out,
            )
            for each in written_questions(document, cut, generator)
        ]
    save_document_questions(out, questions, passages)
    return DocumentCounts(
        passages=len(passages),
        questions=Counter(each.source for each in questions),
        unplaced=sum(each is None for each in asked.values()),
    )


def _documents(folders: Sequence[Path]) -> Iterator[tuple[str, Document]]:
    """Yields the documents of folders with their names. Leaves out files that do not convert."""
    for folder in folders:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files:
            if path.suffix == _MANUAL:
                text = path.read_text(encoding="utf-8", errors="replace")
                yield _name(folder, path), read_manual(text, path.name.split(".")[0])
        others = [path for path in files if path.suffix != _MANUAL]
        if not others:  # manual pages need no libraries
            continue
        with DocumentConverter() as converter:
            for path, converted in converter.convert(others):
                if isinstance(converted, Document):
                    yield _name(folder, path), converted


def _name(folder: Path, path: Path) -> str:
    return f"{folder.name}/{path.relative_to(folder).as_posix()}"


def _is_held_out(name: str) -> bool:
    return crc32(name.encode()) % _HELD_OUT_ONE_IN == 0


def _place(row: Mapping[str, Any]) -> DocumentQuestion | None:
    """Returns a person's question; None if the passage lacks its answers."""
    answers, text = tuple(row["answers"]), " ".join(row["passage"].split())
    start = None
    if answers:
        found = _find_in_sentence(text, answers, row["sentence"])
        if found is None:
            return None
        first, start = found
        answers = (first, *(each for each in answers if each != first))
    return DocumentQuestion(
        source=PEOPLE,
        title=_title(row["document"]),
        context=text,
        question=row["question"],
        answers=answers,
        answer_start=start,
        held_out=_is_held_out(row["document"]),
    )


def _find_in_sentence(text: str, answers: Sequence[str], sentence: str) -> tuple[str, int] | None:
    """Finds an answer in a text, if possible in a sentence of it.

    Returns its spelling in the text and its first character, or None.
    """
    place = _search(sentence, text)
    first, last = place.span() if place else (0, len(text))
    for answer in answers:
        match = _search(answer, text[first:last])
        if match is not None:
            return match.group(), first + match.start()
    return find_answer(text, answers)


def _search(phrase: str, text: str) -> re.Match[str] | None:
    """Finds a phrase in a text, with any space between its words."""
    pattern = r"\s+".join(map(re.escape, phrase.split()))
    return re.search(pattern, text) if pattern else None


def _title(name: str) -> str:
    """Returns a title of project and document: that of `files/git/every-day.txt` has "git"."""
    path = PurePosixPath(name)
    words = re.sub(r"[-_]+", " ", path.name.split(".")[0])
    project = path.parent.name
    return words if words.startswith(project) else f"{project}{HEADING_SEPARATOR}{words}"


def _rows(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            row = json.loads(line)
            missing = _FIELDS - row.keys()
            if missing:
                raise DataError(f"{path}, line {number}: no field {min(missing)}")
            yield row
