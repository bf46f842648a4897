"""Fits the ranking by distance, words and late interaction on held-out questions.

The weights maximise the probability that a right passage is ranked first. Each question counts
equally, so a small collection does not determine the order of all indexes by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.data import DataError, Passage
from models.measuring.calibrate import RankedPassage
from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.measuring.retrieving import MAX_WORD_WEIGHT
from models.measuring.token_scores import TokenScores
from models.mining.retrievers import ScoredPassage

MAX_TOKEN_WEIGHT = 10.0
"""Largest weight of late interaction. Beyond it, the vector distance would hardly count."""
_RIDGE = 1e-4
_MIN_WEIGHT = 1e-6
_START = (4.0, 0.05, 1.0)
"""Weights of nearness, words and late interaction with which the fit starts."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LateWeights:
    """Weights of the hybrid distance."""

    words: float
    """Squared distance that equals one unit of BM25."""
    tokens: float
    """Squared distance that equals one unit of the score of late interaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateCandidates:
    """The candidates of questions and their scores. Arrays are [questions, candidates].

    Rows with fewer candidates are padded.
    """

    passages: Sequence[Sequence[Passage]]
    distances: Floats
    """Squared distances; infinite for padding."""
    words: Floats
    """BM25 scores."""
    tokens: Floats
    """Scores of late interaction."""
    is_right: Flags
    """Whether the passage has the answer."""

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        candidates: Sequence[Sequence[ScoredPassage]],
        is_right: Sequence[Sequence[bool]],
        scores: TokenScores,
    ) -> "LateCandidates":
        """Scores the candidates of each question by late interaction."""
        passages = [[each.passage for each in row] for row in candidates]
        scores.prepare(passage for row in passages for passage in row)
        tokens = [scores.scores(*each) for each in zip(questions, passages, strict=True)]
        return cls(
            passages=passages,
            distances=_padded([[each.distance for each in row] for row in candidates], np.inf),
            words=_padded([[each.words for each in row] for row in candidates], 0.0),
            tokens=_padded(tokens, 0.0),
            is_right=_padded(is_right, 0.0).astype(np.bool_),
        )

    def hybrid_distances(self, weights: LateWeights) -> Floats:
        """Returns the distances by which passages are ranked; infinite for padding."""
        return self.distances - weights.words * self.words - weights.tokens * self.tokens

    def recall_by_passages(
        self, weights: LateWeights, counts: Sequence[int], questions: Flags
    ) -> list[float]:
        """Returns the percentage of `questions` with the answer in the best `count` passages.

        `questions` marks the questions that have an answer, [questions].
        """
        order = self.hybrid_distances(weights).argsort(1, kind="stable")
        ordered = np.take_along_axis(self.is_right, order, 1)[questions]
        return [100 * float(ordered[:, :count].any(1).mean()) for count in counts]

    def best(self, weights: LateWeights, count: int) -> list[list[RankedPassage]]:
        """Returns the `count` passages with the smallest hybrid distance to every question.

        Raises:
            DataError: a question has fewer candidates.

        """
        hybrid = self.hybrid_distances(weights)
        if np.isfinite(hybrid).sum(1).min() < count:
            raise DataError(f"a question has fewer than {count} candidates")
        order = hybrid.argsort(1, kind="stable")[:, :count]
        return [
            [
                RankedPassage(
                    self.passages[row][index],
                    float(self.distances[row, index]),
                    float(hybrid[row, index]),
                    float(self.words[row, index]),
                )
                for index in best.tolist()
            ]
            for row, best in enumerate(order)
        ]


def fit_late_weights(kinds: Sequence[LateCandidates]) -> LateWeights:
    """Returns the weights of words and late interaction, relative to that of nearness.

    Both have an upper bound. Their ratio stays the same if one of them reaches it. Questions
    without a right candidate are left out.

    Raises:
        DataError: no candidate of a kind has the answer.

    """
    examples = []
    for each in kinds:
        chosen = each.is_right.any(1)
        if not chosen.any():
            raise DataError("no training question has its answer among its candidates")
        padding = ~np.isfinite(each.distances[chosen])
        features = np.stack(
            [np.where(padding, 0, -each.distances[chosen]), each.words[chosen], each.tokens[chosen]]
        )
        examples.append((torch.tensor(features), torch.tensor(padding), each.is_right[chosen]))

    def loss(weights: Tensor) -> Tensor:
        losses = [
            len(is_right)
            * ranking_loss(
                torch.einsum("f,fqc->qc", weights, features).masked_fill(padding, -torch.inf),
                torch.tensor(is_right),
            )
            for features, padding, is_right in examples
        ]
        questions = sum(len(is_right) for _, _, is_right in examples)
        return torch.stack(losses).sum() / questions + _RIDGE * weights.sum()

    fitted = fit_signed_weights(torch.tensor(_START, dtype=torch.float64), loss)
    nearness, words, tokens = fitted.tolist()
    scale = max(nearness, words / MAX_WORD_WEIGHT, tokens / MAX_TOKEN_WEIGHT, _MIN_WEIGHT)
    return LateWeights(round(words / scale, 5), round(tokens / scale, 5))


def _padded(rows: Sequence[Sequence[float] | Floats], padding: float) -> Floats:
    """Returns the rows as an array, padded to the longest."""
    padded = np.full((len(rows), max(map(len, rows), default=0)), padding)
    for row, values in zip(padded, rows, strict=True):
        row[: len(values)] = values
    return padded
