"""Reads questions and passages of public data, and finds answers in passages.

Reads DPR's TSV and JSON lines, plain or compressed. Answers are normalised as by SQuAD (Rajpurkar
et al. 2016, section 6.1).
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winnow.errors import WinnowError
from winnow.files.compressed import open_bytes
from winnow.text.scores import normalise


class DataError(WinnowError):
    """A data file is missing or has the wrong format."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage with its title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its accepted answers."""

    text: str
    answers: tuple[str, ...]
    source: str
    """Name of the data set."""
    gold: Passage | None = None
    """Passage that contains the answer, if the data set names one."""
    answer_start: int | None = None
    """First character of the answer in the text of `gold`."""


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a text file. Files named `.gz` or `.zst` are decompressed.

    Raises:
        DataError: the file does not exist.

    """
    if not path.is_file():
        raise DataError(f"file {path} is missing: set --data to the directory that contains it")
    with open_bytes(path) as stream:
        for line in stream:
            yield line.decode("utf-8")


def read_questions(path: Path) -> list[Question]:
    """Reads the questions of a JSON lines file. A row may contain the gold passage."""
    return [_parse_question(json.loads(line)) for line in read_lines(path)]


def read_passages(path: Path, keep_every: int = 1) -> Iterator[Passage]:
    """Yields every `keep_every`-th passage of a DPR TSV file (`id`, `text`, `title`)."""
    for row, line in enumerate(read_lines(path)):
        if row % keep_every == 0:
            _, text, title = line.rstrip("\n").split("\t")
            yield Passage(title, text)


def _parse_question(row: dict[str, Any]) -> Question:
    answers = tuple(row["answers"]) if "answers" in row else (row["answer"],)
    gold = Passage(row.get("title", ""), row["context"]) if "context" in row else None
    return Question(
        text=row["question"],
        answers=answers,
        source=row.get("source", ""),
        gold=gold,
        answer_start=row.get("answer_start"),
    )


def contains_answer(passage: Passage, answers: Iterable[str]) -> bool:
    """Returns whether title or text contains any of the answers, as whole normalised words."""
    words = f" {normalise(passage.title)} {normalise(passage.text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def find_answer(text: str, answers: Iterable[str]) -> tuple[str, int] | None:
    """Finds the first answer that `text` contains as whole words.

    Returns its spelling in the text and its first character, or None.
    """
    for answer in answers:
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", answer)]
        if not words:
            continue
        match = re.search(r"(?<!\w)" + r"\s*".join(words) + r"(?!\w)", text, re.IGNORECASE)
        if match is not None:
            return match.group(), match.start()
    return None


DEVELOPMENT = ("dev-squad", "dev-nq")
"""Names of the development sets."""


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Directory of public data: `qa/*.jsonl.zst` and `passages/wiki2015.tsv.zst`."""

    root: Path

    def development(self, name: str) -> list[Question]:
        """Reads a development set. Development sets measure models and never train them."""
        return read_questions(self.root / "qa" / f"{name}.jsonl.zst")

    def all_development(self) -> list[Question]:
        """Reads every question of every development set."""
        return [question for name in DEVELOPMENT for question in self.development(name)]

    def gold(self) -> list[Question]:
        """Reads training questions, each with the paragraph that answers it."""
        return read_questions(self.root / "qa" / "reader-train.jsonl.zst")

    def pairs(self) -> list[Question]:
        """Reads training questions that have answers but no paragraphs."""
        return read_questions(self.root / "qa" / "pairs-train.jsonl.zst")

    def extra_questions_with_gold(self) -> list[Question]:
        """Reads additional training questions with paragraphs, for `models.packed` only."""
        return read_questions(self.root / "qa" / "reader-train-more.jsonl.zst")

    def extra_questions_without_gold(self) -> list[Question]:
        """Reads additional training questions without paragraphs, for `models.packed` only."""
        return read_questions(self.root / "qa" / "pairs-train-more.jsonl.zst")

    def wikipedia(self, keep_every: int = 1) -> list[Passage]:
        """Reads every `keep_every`-th Wikipedia passage of 100 words."""
        return list(read_passages(self.root / "passages" / "wiki2015.tsv.zst", keep_every))
