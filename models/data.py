"""Questions and passages of public data, and answers in passages by their words.

Knows the row formats of public data: DPR's TSV and JSON lines, plain or zstandard. Normalisation of
answers is SQuAD's (Rajpurkar et al. 2016, section 6.1), from `winnow.text.scores`.
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
    """A data file is missing, or has another format."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A title and a text that answers may be found in."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, its accepted answers, and the passage that answers it where one is given."""

    text: str
    answers: tuple[str, ...]
    source: str
    gold: Passage | None = None
    answer_start: int | None = None


def lines(path: Path) -> Iterator[str]:
    """Yields the lines of a text file, unpacked if its name ends in `.gz` or `.zst`.

    Raises:
        DataError: there is no such file.

    """
    if not path.is_file():
        raise DataError(f"no file {path}: point --data at the directory that holds it")
    with open_bytes(path) as stream:
        for line in stream:
            yield line.decode("utf-8")


def read_questions(path: Path) -> list[Question]:
    """Reads questions of a JSON lines file, with or without passages."""
    return [_question(json.loads(line)) for line in lines(path)]


def read_passages(path: Path, keep_every: int = 1) -> Iterator[Passage]:
    """Yields every `keep_every`-th passage of a DPR TSV file (`id`, `text`, `title`)."""
    for row, line in enumerate(lines(path)):
        if row % keep_every == 0:
            _, text, title = line.rstrip("\n").split("\t")
            yield Passage(title, text)


def _question(row: dict[str, Any]) -> Question:
    answers = tuple(row["answers"]) if "answers" in row else (row["answer"],)
    gold = Passage(row.get("title", ""), row["context"]) if "context" in row else None
    source = row.get("source", "")
    return Question(
        text=row["question"],
        answers=answers,
        source=source,
        gold=gold,
        answer_start=row.get("answer_start"),
    )


__all__ = ["contains_answer", "find_answer", "normalise"]


def contains_answer(passage: Passage, answers: Iterable[str]) -> bool:
    """Returns whether the title or the text contains any answer as whole normalised words."""
    words = f" {normalise(passage.title)} {normalise(passage.text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def find_answer(text: str, answers: Iterable[str]) -> tuple[str, int] | None:
    """Returns the first answer in `text` as whole words: its spelling there, and its start."""
    for answer in answers:
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", answer)]
        if not words:
            continue
        found = re.search(r"(?<!\w)" + r"\s*".join(words) + r"(?!\w)", text, re.IGNORECASE)
        if found is not None:
            return found.group(), found.start()
    return None


DEVELOPMENT = ("dev-squad", "dev-nq")


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """Directory of public data: `qa/*.jsonl.zst` and `passages/wiki2015.tsv.zst`."""

    root: Path

    def development(self, name: str) -> list[Question]:
        """Reads a development set: for measuring, never for training."""
        return read_questions(self.root / "qa" / f"{name}.jsonl.zst")

    def all_development(self) -> list[Question]:
        """Reads every question of every development set."""
        return [question for name in DEVELOPMENT for question in self.development(name)]

    def gold(self) -> list[Question]:
        """Reads training questions with the paragraph that answers them."""
        return read_questions(self.root / "qa" / "reader-train.jsonl.zst")

    def pairs(self) -> list[Question]:
        """Reads training questions with answers only."""
        return read_questions(self.root / "qa" / "pairs-train.jsonl.zst")

    def wikipedia(self, keep_every: int = 1) -> list[Passage]:
        """Reads every `keep_every`-th Wikipedia passage of 100 words."""
        return list(read_passages(self.root / "passages" / "wiki2015.tsv.zst", keep_every))
