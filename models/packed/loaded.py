"""Loads a pack onto a GPU or CPU, and searches its passages with exact indexes."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from models.data import DEVELOPMENT
from models.network.architecture import Encoder
from models.packed.arrays import (
    TRAINING,
    PackedPassages,
    PackedQuestions,
    load_passages,
    load_questions,
)
from models.packed.encoding import encode_passages
from models.packed.search import Candidates, ExactIndex, SearchDepth, join_candidates
from models.packed.tokens import PassageTokens, QuestionTokens

_SEARCHED = 256
"""Number of questions in one search."""


@dataclass(slots=True, kw_only=True)
class LoadedPack:
    """Passages and questions on a device. Each exact index is built once, at its first use."""

    device: torch.device
    packed_passages: PackedPassages
    packed_questions: dict[str, PackedQuestions]
    """Sets of questions by name."""
    passages: PassageTokens
    questions: dict[str, QuestionTokens]
    word_weight: float
    """Squared distance that one unit of BM25 is worth, as in the manifest of a bundle."""
    _indexes: dict[str, ExactIndex] = field(default_factory=dict)

    @classmethod
    def open(cls, directory: Path, device: torch.device, word_weight: float) -> Self:
        """Loads a pack onto a device."""
        packed = load_passages(directory)
        packed_questions = {
            name: load_questions(directory, name) for name in (TRAINING, *DEVELOPMENT)
        }
        return cls(
            device=device,
            packed_passages=packed,
            packed_questions=packed_questions,
            passages=PassageTokens(packed, device),
            questions={
                name: QuestionTokens(each, packed.special, device)
                for name, each in packed_questions.items()
            },
            word_weight=word_weight,
        )

    @property
    def batch_divisor(self) -> int:
        """Divisor of training batch sizes: 1 on a GPU, 16 on a CPU, where large batches need too
        much memory.
        """
        return 1 if self.device.type == "cuda" else 16

    def encode(self, encoder: Encoder) -> Tensor:
        """Returns the vectors of all passages."""
        every = torch.arange(len(self.packed_passages), device=self.device)
        return encode_passages(encoder.body, self.passages, every)

    def index(self, name: str, vectors: Tensor) -> ExactIndex:
        """Returns the index `small`, `large` or `mined` with these vectors of all passages."""
        rows = torch.from_numpy(getattr(self.packed_passages, name)).to(self.device).long()
        if name not in self._indexes:
            self._indexes[name] = ExactIndex(self.passages, rows, vectors[rows])
        self._indexes[name].replace_vectors(vectors[rows])
        return self._indexes[name]

    def search(
        self,
        index: ExactIndex,
        questions: QuestionTokens,
        numbers_and_vectors: tuple[Tensor, Tensor],
        depth: SearchDepth,
        deadline: float = float("inf"),
    ) -> Candidates:
        """Returns the candidates of the questions that are searched before `deadline`.

        At least one batch is searched.
        """
        parts: list[Candidates] = []
        for numbers, vectors in zip(
            *(torch.split(each, _SEARCHED) for each in numbers_and_vectors), strict=True
        ):
            if parts and time.monotonic() > deadline:
                break
            parts.append(index.search(questions, numbers, vectors, depth, self.word_weight))
        return join_candidates(parts)

    def forget_indexes(self) -> None:
        """Frees the memory of all indexes."""
        self._indexes.clear()

    def gold(self, name: str) -> Tensor:
        """Returns the gold passages of a question set, -1 where unknown."""
        return torch.from_numpy(self.packed_questions[name].gold).to(self.device).long()

    def source_numbers(self, numbers: Tensor) -> Tensor:
        """Returns the index of each training question's source in `source_names`."""
        return (
            torch.from_numpy(self.packed_questions[TRAINING].sources)
            .to(self.device)
            .long()[numbers]
        )

    @property
    def source_names(self) -> list[str]:
        return [str(name) for name in self.packed_questions[TRAINING].names]

    def shares(self, numbers: Tensor, by_source: Mapping[str, float]) -> Tensor:
        """Returns the share of each training question by its source; 1 for other sources."""
        shares = [by_source.get(name, 1.0) for name in self.source_names]
        return torch.tensor(shares, device=self.device)[self.source_numbers(numbers)]
