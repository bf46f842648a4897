"""Training questions with hard negatives, made by the encoder as it is now."""

import random
from collections.abc import Mapping
from pathlib import Path

from models.data import DataDirectory, Passage
from models.mining.embedding import Embedder
from models.mining.mine import (
    TrainingQuestion,
    is_saved,
    joined,
    load,
    mine,
    save,
    split,
    supervise,
    unseen,
)
from models.mining.retrievers import LexicalIndex
from models.steps.clozes import CLOZES
from models.workspace import Workspace
from winnow.files.opened import sha256


def mine_questions(data: DataDirectory, weights: Path, work: Workspace, extra: int) -> int:
    """Makes training questions with hard negatives; returns how many. Takes about ten minutes.

    `extra` Wikipedia passages are searched for negatives, beside those that answer a question.
    """
    graph = work.graph("encoder", "int8")
    embedder = Embedder(graph, weights / "tokenizer.json", cache=work.vectors)
    measured_on, wikipedia = data.all_development(), data.wikipedia()
    lexical = LexicalIndex(wikipedia)
    supervised = supervise(unseen(data.pairs(), measured_on), lexical, embedder)
    random.Random(0).shuffle(wikipedia)
    gold = unseen(data.gold(), measured_on)
    passages, questions = mine([*gold, *supervised], wikipedia[:extra], embedder)
    work.mined_by.unlink(missing_ok=True)  # until the files are whole, they are nobody's
    save(work.mined, passages, questions)
    work.mined_by.write_text(sha256(graph))
    return len(questions)


def is_mined(work: Workspace) -> bool:
    """Returns whether the training questions were made by the encoder as it is now."""
    graph, by = work.graph("encoder", "int8"), work.mined_by
    return graph.is_file() and by.is_file() and by.read_text() == sha256(graph)


def load_learnt(work: Workspace) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages, and the questions to learn from.

    Raises:
        DataError: nothing was mined yet.

    """
    return load_to_learn(work.mined, work, {})


def to_read(work: Workspace) -> Path:
    """Returns the directory of the questions that a student reader learns from.

    It holds the passages of the served retriever, or, if these were not mined, the encoder's
    mistakes.
    """
    return work.ranked if is_saved(work.ranked) else work.mined


def load_to_learn(
    directory: Path, work: Workspace, passes: Mapping[str, float]
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages, and the questions to learn from: those of `directory` and, if they are
    to be seen, cloze questions beside them.

    Raises:
        DataError: nothing was mined yet.

    """
    passages, questions = load(directory)
    if CLOZES in passes:
        passages, questions = joined(passages, questions, *load(work.clozes))
    learnt, _ = split(questions, passages)
    return passages, learnt


def load_held_out(mined: Path) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages of a mining, and the questions that no model learns from.

    Raises:
        DataError: nothing was mined yet.

    """
    passages, questions = load(mined)
    _, held = split(questions, passages)
    return passages, held
