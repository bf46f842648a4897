"""Fits the weights of the final score on held-out training questions.

For each question, reads the retrieved passages with the smallest hybrid distances. The weights
maximise the softmax probability of passages with a right span, which is the chance that the merged
answer is right.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.assemble import ScoreWeights
from models.data import DataError, Passage, contains_answer
from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import NearestPassages
from models.mining.mine import TrainingQuestion
from winnow.quoting import many
from winnow.text.scores import exact_match

PASSAGES = 20
"""Number of passages to read for each question."""
_RIDGE = 1e-3
_MIN_SPREAD = 1e-6
SIGNS = (1.0, 1.0, -1.0)
"""Signs of the weights of relevance, span and distance.

The fixed signs ensure that a higher relevance, a higher span score and a smaller distance never
lower the score.
"""
_ACCEPTED = 0.95
"""Share of right answers above the threshold of `has_answer`."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A retrieved passage with its distances to the question."""

    passage: Passage
    distance: float
    """Squared distance of the vectors."""
    hybrid_distance: float
    """`distance` minus the weight of the words that match the question."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Reader outputs for the retrieved passages of each question, by rising hybrid distance."""

    features: NDArray[np.float64]
    """Relevance, span and distance, [questions, passages, 3]."""
    hybrid_distances: NDArray[np.float64]
    """Hybrid distances of the passages, [questions, passages]."""
    is_right: NDArray[np.bool_]
    """Whether the best span is a right answer, [questions, passages]."""
    has_answer: NDArray[np.bool_]
    """Whether the passage contains a right answer anywhere, [questions, passages]."""


def sample_questions(
    questions: Sequence[TrainingQuestion], max_by_source: dict[str, int], seed: int
) -> list[TrainingQuestion]:
    """Draws at most `max_by_source[source]` questions of each source."""
    generator = random.Random(seed)
    drawn: list[TrainingQuestion] = []
    for source, count in sorted(max_by_source.items()):
        of_source = [question for question in questions if question.source == source]
        drawn += generator.sample(of_source, min(count, len(of_source)))
    return drawn


def best_passages(
    nearest: NearestPassages, passages: Sequence[Passage], word_weight: float
) -> list[list[RankedPassage]]:
    """Returns the `PASSAGES` passages with the smallest hybrid distance to every question."""
    hybrid_distances = nearest.hybrid_distances(word_weight)
    order = hybrid_distances.argsort(1, kind="stable")[:, :PASSAGES]
    columns = [
        np.take_along_axis(each, order, 1).tolist()
        for each in (nearest.indices, nearest.distances, hybrid_distances)
    ]
    return [
        [
            RankedPassage(passages[index], distance, hybrid)
            for index, distance, hybrid in zip(*rows, strict=True)
        ]
        for rows in zip(*columns, strict=True)
    ]


def read_candidates(
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    reader: OfflineReader,
) -> Candidates:
    """Reads the retrieved passages of every question. All questions need equally many passages."""
    pairs = [
        (question, ranked)
        for question, row in zip(questions, retrieved, strict=True)
        for ranked in row
    ]
    readings = reader.read_all(
        [(question.question, ranked.passage, ranked.distance) for question, ranked in pairs],
        "read candidates",
    )
    features = np.array([(r.relevance, r.span_score, r.distance) for r in readings])
    is_right = [
        exact_match(reading.answer, question.answers)
        for reading, (question, _) in zip(readings, pairs, strict=True)
    ]
    has_answer = [contains_answer(ranked.passage, question.answers) for question, ranked in pairs]
    hybrid = np.array([[ranked.hybrid_distance for ranked in row] for row in retrieved])
    return Candidates(
        features.reshape(*hybrid.shape, 3),
        hybrid,
        np.array(is_right).reshape(hybrid.shape),
        np.array(has_answer).reshape(hybrid.shape),
    )


def fit_score(candidates: Candidates) -> ScoreWeights:
    """Returns the weights, and a threshold that accepts most right answers.

    Raises:
        DataError: no question was answered correctly.

    """
    is_answered = candidates.is_right.any(1)
    if not is_answered.any():
        raise DataError(
            f"no correct answer to any of {many(len(candidates.is_right), 'training question')}: "
            "train the reader longer before calibrating"
        )
    features = torch.tensor(candidates.features[is_answered])
    is_right = torch.tensor(candidates.is_right[is_answered])
    spread = features.flatten(0, 1).std(0).clamp(min=_MIN_SPREAD)
    weights = (_fit_weights(features / spread, is_right) / spread).tolist()
    scores = candidates.features @ np.array(weights)
    best = scores.argmax(1)
    rows = np.arange(len(best))
    right_scores = scores[rows, best][candidates.is_right[rows, best]]
    threshold = float(np.quantile(right_scores, 1 - _ACCEPTED)) if len(right_scores) else 0.0
    return ScoreWeights(weights[0], weights[1], weights[2], threshold)


def exact_match_by_passages(
    candidates: Candidates, score: ScoreWeights, counts: Sequence[int]
) -> list[float]:
    """Returns exact match in percent after reading each number of passages in `counts`."""
    scores = candidates.features @ np.array([score.relevance, score.span, score.distance])
    rows = np.arange(len(scores))
    return [
        100 * float(candidates.is_right[rows, scores[:, :count].argmax(1)].mean())
        for count in counts
    ]


def _fit_weights(features: Tensor, is_right: Tensor) -> Tensor:
    """Returns the weights that maximise the probability of right passages."""

    def loss(weights: Tensor) -> Tensor:
        return ranking_loss(features @ weights, is_right) + _RIDGE * (weights**2).sum()

    return fit_signed_weights(0.25 * torch.tensor(SIGNS, dtype=features.dtype), loss)
