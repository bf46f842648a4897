"""Reads and writes a pack: passages and questions as arrays of token ids.

A pack is a directory of NumPy arrays: `passages/`, and a directory for every set of questions.
Training from a pack needs no tokenizer.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.mining.document_files import PEOPLE, RULES

TRAINING = "training"
"""Name of the set of training questions. `models.data.DEVELOPMENT` names the development sets."""
CLOZE = "cloze"
"""Name of the source of cloze questions."""
SENTENCE_SOURCES = ("squad-train-sentences", "qamr-wiki-devtest")
"""Sources whose passages are single sentences. These passages are not searched."""
CHANGED_SOURCES = (
    *("squad", "squad-tokenised", "nq-qed-train", "tydiqa-en-train"),
    *("squad-train-routerlens", "squad-train-flanevaluator", PEOPLE, RULES),
)
"""Sources of questions whose premises are changed."""
MAX_ANSWERS, MAX_ANSWER_TOKENS = 6, 12
"""Maximum numbers of answers per question, and of tokens per answer."""
UNKNOWN, NO_ANSWER = -1, -2
"""Index of an unknown passage or token, and of the answer's tokens in a passage that lacks it."""
CHANGED, CHANGED_IN_DOCUMENTS = "changed-premise", "changed-premise-documents"
"""Names of the sources of questions with a changed premise, which have no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedPassages:
    """Token ids of all passages, one after the other."""

    tokens: NDArray[np.uint16]
    """Title and text of every passage, without special tokens."""
    starts: NDArray[np.int64]
    """Index of each passage's first token, then the number of all tokens, [passages + 1]."""
    title_lengths: NDArray[np.uint8]
    """Number of tokens of each title."""
    held_out: NDArray[np.bool_]
    """Whether the passage's article is held out from training."""
    small: NDArray[np.int32]
    """Passages of the smaller index for measurements."""
    large: NDArray[np.int32]
    """Passages of the larger index for measurements."""
    mined: NDArray[np.int32]
    """Passages of the index in which candidates for training questions are searched."""
    continues: NDArray[np.bool_]
    """Whether a token of the vocabulary continues a word, [vocabulary]."""
    minor: NDArray[np.bool_]
    """Whether a token is an article or punctuation, which exact match ignores, [vocabulary]."""
    special: NDArray[np.int32]
    """Ids of [CLS] and [SEP]."""

    def __len__(self) -> int:
        return len(self.title_lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedQuestions:
    """Token ids of questions and answers, with the passages that answer them."""

    tokens: NDArray[np.uint16]
    """All questions, one after the other, without special tokens."""
    starts: NDArray[np.int64]
    """Index of each question's first token, then the number of all tokens, [questions + 1]."""
    gold: NDArray[np.int32]
    """Passage that answers the question or only seems to, or `UNKNOWN`."""
    spans: NDArray[np.int32]
    """First and last token of the answer in the text of `gold`, [questions, 2].

    `UNKNOWN` if they are to be found, `NO_ANSWER` if `gold` does not answer the question.
    """
    answers: NDArray[np.uint16]
    """Accepted answers, padded by 0, [questions, `MAX_ANSWERS`, `MAX_ANSWER_TOKENS`]."""
    sources: NDArray[np.uint8]
    """Index of each question's source in `names`."""
    names: NDArray[np.str_]
    """Names of the sources."""

    def __len__(self) -> int:
        return len(self.gold)


def save_arrays(directory: Path, pack: PackedPassages | PackedQuestions) -> None:
    """Writes every array to its own file."""
    directory.mkdir(parents=True, exist_ok=True)
    for field in fields(pack):
        np.save(directory / f"{field.name}.npy", getattr(pack, field.name))


def load_passages(directory: Path) -> PackedPassages:
    """Reads the passages of a pack."""
    return PackedPassages(**_load_arrays(directory / "passages", PackedPassages))


def load_questions(directory: Path, name: str) -> PackedQuestions:
    """Reads a set of questions of a pack."""
    return PackedQuestions(**_load_arrays(directory / name, PackedQuestions))


def write_figures_json(path: Path, figures: Mapping[str, Any]) -> None:
    """Adds figures to a JSON file, and replaces figures of the same names."""
    before = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, **figures}, indent=1))


def _load_arrays(directory: Path, kind: type[PackedPassages | PackedQuestions]) -> dict[str, Any]:
    return {field.name: np.load(directory / f"{field.name}.npy") for field in fields(kind)}
