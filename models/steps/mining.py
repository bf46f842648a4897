"""Mines training questions with hard negatives of the current encoder, and loads them."""

import random
from collections.abc import Mapping
from pathlib import Path

from models.data import DataDirectory, Passage
from models.mining.embedding import Embedder
from models.mining.held_out import exclude_questions
from models.mining.mine import (
    TrainingQuestion,
    find_gold_passages,
    has_mined,
    load_mined,
    merge_mined,
    mine_negatives,
    save_mined,
    split_held_out,
)
from models.mining.retrievers import LexicalIndex
from models.steps.clozes import CLOZES
from models.workspace import Workspace
from winnow.files.opened import sha256


def mine_questions(
    data: DataDirectory, weights: Path, workspace: Workspace, extra_passages: int
) -> int:
    """Makes training questions with hard negatives, and returns the number of questions.

    Negatives are drawn from the gold passages and `extra_passages` Wikipedia passages. Takes about
    ten minutes.
    """
    graph = workspace.graph("encoder", "int8")
    embedder = Embedder(graph, weights / "tokenizer.json", cache=workspace.vectors)
    development, wikipedia = data.all_development(), data.wikipedia()
    lexical = LexicalIndex(wikipedia)
    supervised = find_gold_passages(exclude_questions(data.pairs(), development), lexical, embedder)
    random.Random(0).shuffle(wikipedia)
    gold = exclude_questions(data.gold(), development)
    passages, questions = mine_negatives([*gold, *supervised], wikipedia[:extra_passages], embedder)
    # an interruption must not leave a checksum that belongs to earlier questions
    workspace.mining_encoder.unlink(missing_ok=True)
    save_mined(workspace.mined_questions, passages, questions)
    workspace.mining_encoder.write_text(sha256(graph))
    return len(questions)


def is_mined(workspace: Workspace) -> bool:
    """Returns whether the training questions were mined with the current encoder."""
    graph, checksum = workspace.graph("encoder", "int8"), workspace.mining_encoder
    return graph.is_file() and checksum.is_file() and checksum.read_text() == sha256(graph)


def student_questions(workspace: Workspace) -> Path:
    """Returns the directory of the questions that a student reader is trained on.

    Returns the questions with negatives of the served retriever if there are any, else those with
    negatives of the encoder.
    """
    return (
        workspace.questions_with_negatives
        if has_mined(workspace.questions_with_negatives)
        else workspace.mined_questions
    )


def load_training(
    directory: Path, workspace: Workspace, passes: Mapping[str, float]
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages and the training questions of `directory`.

    Adds cloze questions if `passes` names them.

    Raises:
        DataError: the questions were not mined.

    """
    passages, questions = load_mined(directory)
    if CLOZES in passes:
        passages, questions = merge_mined(
            passages, questions, *load_mined(workspace.cloze_questions)
        )
    training, _ = split_held_out(questions, passages)
    return passages, training


def load_held_out(directory: Path) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages and the held-out questions of `directory`.

    Raises:
        DataError: the questions were not mined.

    """
    passages, questions = load_mined(directory)
    _, held_out = split_held_out(questions, passages)
    return passages, held_out
