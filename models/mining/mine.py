"""Makes training questions with a positive passage and hard negatives.

Questions without a gold passage get distant supervision (Mintz et al. 2009; Chen et al. 2017,
section 4): a retrieved passage with the answer is positive if its vector is near enough. Negatives
are passages that the encoder retrieves although they contain no answer.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.cached_file import replace_durably
from models.data import DataError, Passage, Question, contains_answer, find_answer
from models.mining.embedding import Embedder
from models.mining.held_out import is_held_out
from models.mining.retrievers import LexicalIndex

Row = TypeVar("Row")
NEGATIVES = 8
"""Maximum number of negatives to keep per question. Training draws from them."""

_PASSAGES, _QUESTIONS = "passages.jsonl", "questions.jsonl"
_COMMANDS = {"ranked": "mine-ranking", "clozes": "mine-clozes"}
"""Commands that fill directories, by the directory's name. `mine` fills all other directories."""
_NEAREST = 40
"""Number of nearest passages to take negatives from."""
_COMPARED = 2
"""Number of passages with the answer to compare for each question, best first by BM25."""
_MIN_COSINE = 0.45
"""Below this cosine, a passage that contains the answer is assumed to be off topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """A training question. Passages are indices into a list. Field names are keys on disk."""

    question: str
    answer: str
    answer_start: int
    """First character of the answer in the text of the positive passage."""
    source: str
    positive: int
    negatives: tuple[int, ...]
    others: tuple[str, ...] = ()
    """Other accepted answers."""

    @property
    def answers(self) -> tuple[str, ...]:
        """All accepted answers."""
        return (self.answer, *self.others)


def find_gold_passages(
    questions: Sequence[Question], lexical: LexicalIndex, embedder: Embedder
) -> list[Question]:
    """Returns the questions that have their answer in a near passage, with this passage as gold."""
    pairs: list[tuple[Question, Passage, str, int]] = []
    for question in questions:
        compared = 0
        for passage in lexical.search(question.text, 20):
            match = find_answer(passage.text, question.answers)
            if match is not None and compared < _COMPARED:
                compared += 1
                pairs.append((question, passage, *match))
    question_vectors = embedder.questions([pair[0].text for pair in pairs])
    passage_vectors = embedder.passages([pair[1] for pair in pairs])
    cosines = (question_vectors * passage_vectors).sum(1)
    best: dict[str, tuple[float, Question]] = {}
    for (question, passage, answer, start), cosine in zip(pairs, cosines.tolist(), strict=True):
        if cosine >= _MIN_COSINE and cosine > best.get(question.text, (0.0, None))[0]:
            best[question.text] = (cosine, with_gold(question, passage, answer, start))
    return [question for _, question in best.values()]


def with_gold(question: Question, passage: Passage, answer: str, start: int) -> Question:
    """Returns the question with `passage` as gold, and with `answer` as the first answer."""
    others = (each for each in question.answers if each != answer)
    return replace(question, answers=(answer, *others), gold=passage, answer_start=start)


def to_training_question(
    question: Question, positive: int, negatives: Sequence[int]
) -> TrainingQuestion:
    """Returns a question with a gold passage as a training question."""
    assert question.answer_start is not None, "the gold passage contains the answer"
    return TrainingQuestion(
        question=question.text,
        answer=question.answers[0],
        answer_start=question.answer_start,
        source=question.source,
        positive=positive,
        negatives=tuple(negatives),
        others=question.answers[1:],
    )


def mine_negatives(
    questions: Sequence[Question], extra: Sequence[Passage], embedder: Embedder
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages, and the questions with a gold passage and their hard negatives.

    Negatives are retrieved from the gold passages and `extra`. With `extra`, the retriever makes
    the mistakes that it makes with a large index.
    """
    golds = [question.gold for question in questions if question.gold is not None]
    passages = list(dict.fromkeys([*golds, *extra]))
    indices = {passage: index for index, passage in enumerate(passages)}
    passage_vectors = embedder.passages(passages)
    question_vectors = embedder.questions([question.text for question in questions])
    mined = []
    neighbours = nearest_rows(question_vectors, passage_vectors, _NEAREST)
    for question, near in zip(questions, neighbours, strict=True):
        if question.gold is None or question.answer_start is None:
            continue
        negatives = [
            int(index) for index in near if not contains_answer(passages[index], question.answers)
        ]
        positive = indices[question.gold]
        mined.append(to_training_question(question, positive, negatives[:NEGATIVES]))
    return passages, mined


def nearest_rows(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], k: int
) -> NDArray[np.int64]:
    """Returns the `k` nearest rows of `vectors` to each query by exact search, nearest first."""
    batches = []
    for start in range(0, len(queries), 1024):
        scores = queries[start : start + 1024] @ vectors.T
        best = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1)
        batches.append(np.take_along_axis(best, order, 1))
    return np.concatenate(batches)


def merge_mined(
    passages: Sequence[Passage],
    questions: Sequence[TrainingQuestion],
    more_passages: Sequence[Passage],
    more_questions: Sequence[TrainingQuestion],
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns the passages and questions of two mining runs as one, with adjusted indices."""
    first = len(passages)
    adjusted = [
        replace(
            each,
            positive=each.positive + first,
            negatives=tuple(index + first for index in each.negatives),
        )
        for each in more_questions
    ]
    return [*passages, *more_passages], [*questions, *adjusted]


def save_mined(
    directory: Path, passages: Sequence[Passage], questions: Sequence[TrainingQuestion]
) -> None:
    """Writes `passages.jsonl` and `questions.jsonl`.

    An interruption leaves no `questions.jsonl`, so questions never refer to the passages of another
    run.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _QUESTIONS).unlink(missing_ok=True)
    _write_rows(directory / _PASSAGES, passages)
    _write_rows(directory / _QUESTIONS, questions)


def has_mined(directory: Path) -> bool:
    """Returns whether `save_mined` has finished in `directory`."""
    return (directory / _QUESTIONS).is_file()


def load_mined(directory: Path) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Reads passages and questions that `save_mined` wrote.

    Raises:
        DataError: the directory has no questions, or a file is damaged.

    """
    command = _COMMANDS.get(directory.name, "mine")
    if not has_mined(directory):
        raise DataError(
            f"{directory} has no training questions: run `winnow models {command}` first"
        )
    return (
        _read_rows(directory / _PASSAGES, lambda row: Passage(**row), command),
        _read_rows(directory / _QUESTIONS, _to_question, command),
    )


def _to_question(row: dict[str, Any]) -> TrainingQuestion:
    negatives, others = tuple(row["negatives"]), tuple(row.get("others", ()))
    return TrainingQuestion(**{**row, "negatives": negatives, "others": others})


def _read_rows(path: Path, parse: Callable[[dict[str, Any]], Row], command: str) -> list[Row]:
    rows: list[Row] = []
    try:
        with path.open(encoding="utf-8") as file:
            rows.extend(parse(json.loads(line)) for line in file)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is damaged in line {len(rows) + 1}: run `winnow models {command}` again"
        ) from error
    return rows


def _write_rows(path: Path, rows: Sequence[Passage] | Sequence[TrainingQuestion]) -> None:
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
    replace_durably(partial, path)


def split_held_out(
    questions: Sequence[TrainingQuestion], passages: Sequence[Passage]
) -> tuple[list[TrainingQuestion], list[TrainingQuestion]]:
    """Returns training questions and held-out questions.

    About one article in sixteen is held out.
    """
    sides: tuple[list[TrainingQuestion], list[TrainingQuestion]] = ([], [])
    for question in questions:
        sides[is_held_out(passages[question.positive])].append(question)
    return sides
