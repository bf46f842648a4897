"""Training questions: a positive passage, and the retriever's own mistakes as negatives.

Gold passages come with their questions. Questions without one get distant supervision (Mintz et
al. 2009; Chen et al. 2017, section 4): a retrieved passage that contains the answer is taken as
positive if the encoder finds it near enough. Negatives are passages that the encoder retrieves
although they lack every answer: the reader meets these when it serves.

Some training questions are held out, to calibrate with. A reader is surer of questions that it has
seen: weights and thresholds that are fitted on them would be wrong for others. Whole articles are
held out, by a hash of their title, so that every step holds out the same ones.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from models.data import DataError, Passage, Question, contains_answer, find_answer, normalise
from models.mining.embedding import Embedder
from models.mining.retrievers import LexicalIndex

NEGATIVES = 8
"""Negatives kept for a question; training draws from them."""

_PASSAGES, _QUESTIONS = "passages.jsonl", "questions.jsonl"
_COMMANDS = {"ranked": "mine-ranking", "clozes": "mine-clozes"}
"""The command that fills a directory, if it is not `mine`."""
_DEPTH = 40
_COMPARED = 2
_SIMILARITY_FLOOR = 0.45
"""Cosine under which an answer-bearing passage is taken to be about something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """A question, where its answer stands, and passages by number: one positive, some negatives."""

    question: str
    answer: str
    answer_start: int
    source: str
    positive: int
    negatives: tuple[int, ...]
    others: tuple[str, ...] = ()
    """Answers that are right, too."""

    @property
    def answers(self) -> tuple[str, ...]:
        """All that are right."""
        return (self.answer, *self.others)


def unseen(questions: Sequence[Question], held_out: Sequence[Question]) -> list[Question]:
    """Returns the questions that are not in `held_out`, letter case and punctuation aside."""
    known = {normalise(question.text) for question in held_out}
    return [question for question in questions if normalise(question.text) not in known]


def supervise(
    questions: Sequence[Question], lexical: LexicalIndex, embedder: Embedder
) -> list[Question]:
    """Distant supervision: the questions whose answer a near passage contains, with that passage.

    At most two answer-bearing passages a question are compared, the best by BM25.
    """
    pairs: list[tuple[Question, Passage, str, int]] = []
    for question in questions:
        found = 0
        for passage in lexical.search(question.text, 20):
            place = find_answer(passage.text, question.answers)
            if place is not None and found < _COMPARED:
                found += 1
                pairs.append((question, passage, *place))
    asked = embedder.questions([pair[0].text for pair in pairs])
    read = embedder.passages([pair[1] for pair in pairs])
    nearness = (asked * read).sum(1)
    best: dict[str, tuple[float, Question]] = {}
    for (question, passage, answer, start), near in zip(pairs, nearness.tolist(), strict=True):
        if near >= _SIMILARITY_FLOOR and near > best.get(question.text, (0.0, None))[0]:
            others = tuple(each for each in question.answers if each != answer)
            known = (answer, *others)
            labelled = Question(
                text=question.text,
                answers=known,
                source=question.source,
                gold=passage,
                answer_start=start,
            )
            best[question.text] = (near, labelled)
    return [question for _, question in best.values()]


def mine(
    questions: Sequence[Question], extra: Sequence[Passage], embedder: Embedder
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Gives every question with a gold passage its nearest passages that lack the answer.

    `extra` passages are retrieved from beside the gold ones, so that the retriever errs as it will
    over a large index.
    """
    golds = [question.gold for question in questions if question.gold is not None]
    passages = list(dict.fromkeys([*golds, *extra]))
    number = {passage: place for place, passage in enumerate(passages)}
    vectors = embedder.passages(passages)
    asked = embedder.questions([question.text for question in questions])
    mined = []
    for question, near in zip(questions, nearest(asked, vectors, _DEPTH), strict=True):
        if question.gold is None or question.answer_start is None:
            continue
        negatives = [
            int(place) for place in near if not contains_answer(passages[place], question.answers)
        ]
        mined.append(
            TrainingQuestion(
                question=question.text,
                answer=question.answers[0],
                answer_start=question.answer_start,
                source=question.source,
                positive=number[question.gold],
                negatives=tuple(negatives[:NEGATIVES]),
                others=question.answers[1:],
            )
        )
    return passages, mined


def nearest(asked: NDArray[np.float32], vectors: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Returns the `k` nearest rows of `vectors` to each row of `asked` by exact search, nearest
    first.
    """
    found = []
    for start in range(0, len(asked), 1024):
        scores = asked[start : start + 1024] @ vectors.T
        best = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1)
        found.append(np.take_along_axis(best, order, 1))
    return np.concatenate(found)


def joined(
    passages: Sequence[Passage],
    questions: Sequence[TrainingQuestion],
    more_passages: Sequence[Passage],
    more_questions: Sequence[TrainingQuestion],
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns the questions of two minings, over the passages of both."""
    first = len(passages)
    moved = [
        replace(
            each,
            positive=each.positive + first,
            negatives=tuple(number + first for number in each.negatives),
        )
        for each in more_questions
    ]
    return [*passages, *more_passages], [*questions, *moved]


def save(
    directory: Path, passages: Sequence[Passage], questions: Sequence[TrainingQuestion]
) -> None:
    """Writes `passages.jsonl` and `questions.jsonl`; an interruption leaves no questions, never
    those of other passages.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _QUESTIONS).unlink(missing_ok=True)
    _write(directory / _PASSAGES, passages)
    _write(directory / _QUESTIONS, questions)


def is_saved(directory: Path) -> bool:
    """Returns whether `save` wrote there, to its end."""
    return (directory / _QUESTIONS).is_file()


def load(directory: Path) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Reads what `save` wrote.

    Raises:
        DataError: nothing was saved there.

    """
    if not is_saved(directory):
        command = _COMMANDS.get(directory.name, "mine")
        raise DataError(
            f"{directory} has no training questions: run `winnow models {command}` first"
        )
    with (directory / _PASSAGES).open(encoding="utf-8") as file:
        passages = [Passage(**json.loads(line)) for line in file]
    with (directory / _QUESTIONS).open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return passages, [
        TrainingQuestion(
            **{**row, "negatives": tuple(row["negatives"]), "others": tuple(row.get("others", ()))}
        )
        for row in rows
    ]


def _write(path: Path, rows: Sequence[Passage] | Sequence[TrainingQuestion]) -> None:
    aside = path.with_suffix(".partial")
    with aside.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
    aside.replace(path)


ONE_IN = 16


def split(
    questions: Sequence[TrainingQuestion], passages: Sequence[Passage]
) -> tuple[list[TrainingQuestion], list[TrainingQuestion]]:
    """Returns the questions to learn from, and those held out: about one article in sixteen."""
    sides: tuple[list[TrainingQuestion], list[TrainingQuestion]] = ([], [])
    for question in questions:
        sides[is_held_out(passages[question.positive])].append(question)
    return sides


def is_held_out(passage: Passage) -> bool:
    """Returns whether questions about this passage's article are kept from training."""
    return crc32((passage.title or passage.text).encode()) % ONE_IN == 0
