"""Fitting the weights of the final score on training questions that no model has seen.

For each question the retriever's best passages are read, in the order of hybrid distance. The
weights maximise the probability that the softmax of the scores gives to passages whose span is
right: the chance that the merged answer is right. Pure tensors but for the reading.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.assemble import Score
from models.data import DataError, Passage, contains_answer
from models.measuring.fitting import minimise
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import NearestPassages
from models.mining.mine import TrainingQuestion
from winnow.quoting import many
from winnow.text.scores import exact_match

PASSAGES = 20
_RIDGE = 1e-3
_LEAST_SPREAD = 1e-6
SIGNS = (1.0, 1.0, -1.0)
"""A more relevant passage, a surer span and a nearer passage never count against an answer."""
_KEPT = 0.95
"""Share of right answers that stay above the threshold of `has_answer`."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A passage that was found for a question."""

    passage: Passage
    distance: float
    """Squared distance of the encodings."""
    hybrid_distance: float
    """Distance less the worth of matching words."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Passages that were read, in the order of their hybrid distance."""

    features: NDArray[np.float64]
    """Relevance, span and distance, [questions, passages, 3]."""
    hybrid_distances: NDArray[np.float64]
    """[questions, passages]."""
    right: NDArray[np.bool_]
    """Whether their spans are, [questions, passages]."""
    bearing: NDArray[np.bool_]
    """Whether they contain the answer anywhere, [questions, passages]."""


def sample(
    questions: Sequence[TrainingQuestion], each: dict[str, int], seed: int
) -> list[TrainingQuestion]:
    """Draws at most `each[source]` questions of each source."""
    generator = random.Random(seed)
    chosen: list[TrainingQuestion] = []
    for source, count in sorted(each.items()):
        own = [question for question in questions if question.source == source]
        chosen += generator.sample(own, min(count, len(own)))
    return chosen


def best_of(
    near: NearestPassages, passages: Sequence[Passage], word_weight: float
) -> list[list[Retrieved]]:
    """Returns the best `PASSAGES` of those near every question, best first."""
    every = near.hybrid_distances(word_weight)
    order = every.argsort(1, kind="stable")[:, :PASSAGES]
    columns = [np.take_along_axis(each, order, 1) for each in (near.places, near.distances, every)]
    return [
        [
            Retrieved(passages[place], distance, hybrid)
            for place, distance, hybrid in zip(
                *(column[row].tolist() for column in columns), strict=True
            )
        ]
        for row in range(len(order))
    ]


def candidates(
    questions: Sequence[TrainingQuestion],
    retrieved: Sequence[Sequence[Retrieved]],
    reader: OfflineReader,
) -> Candidates:
    """Reads what was `retrieved` for every question: as many passages for each."""
    work = [
        (question.question, found.passage, found.distance)
        for question, row in zip(questions, retrieved, strict=True)
        for found in row
    ]
    readings = reader.read_all(work, "read candidates")
    features = np.array([(r.relevance, r.span_score, r.distance) for r in readings])
    answers = [q.answers for q, row in zip(questions, retrieved, strict=True) for _ in row]
    right = [exact_match(r.text, a) for r, a in zip(readings, answers, strict=True)]
    hybrid = np.array([[found.hybrid_distance for found in row] for row in retrieved])
    bearing = [
        contains_answer(found.passage, question.answers)
        for question, row in zip(questions, retrieved, strict=True)
        for found in row
    ]
    return Candidates(
        features.reshape(*hybrid.shape, 3),
        hybrid,
        np.array(right).reshape(hybrid.shape),
        np.array(bearing).reshape(hybrid.shape),
    )


def fit(found: Candidates) -> Score:
    """Returns the weights, and the threshold that keeps most right answers.

    Raises:
        DataError: no question was answered right, so there is nothing to fit.

    """
    able = found.right.any(1)
    if not able.any():
        raise DataError(
            f"none of {many(len(found.right), 'training question')} was answered right: "
            "train the reader longer before calibrating"
        )
    features = torch.tensor(found.features[able])
    right = torch.tensor(found.right[able])
    spread = features.flatten(0, 1).std(0).clamp(min=_LEAST_SPREAD)
    weights = (_maximise(features / spread, right) / spread).tolist()
    scores = found.features @ np.array(weights)
    best = scores.argmax(1)
    rows = np.arange(len(best))
    right_scores = scores[rows, best][found.right[rows, best]]
    threshold = float(np.quantile(right_scores, 1 - _KEPT)) if len(right_scores) else 0.0
    return Score(weights[0], weights[1], weights[2], threshold)


def exact_match_by_passages(found: Candidates, score: Score, steps: Sequence[int]) -> list[float]:
    """Returns exact match in percent after reading as many passages as each step says."""
    weights = np.array([score.relevance, score.span, score.distance])
    scores = found.features @ weights
    rows = np.arange(len(scores))
    return [100 * float(found.right[rows, scores[:, :step].argmax(1)].mean()) for step in steps]


def _maximise(features: Tensor, right: Tensor) -> Tensor:
    signs = torch.tensor(SIGNS, dtype=features.dtype)
    roots = torch.full_like(signs, 0.5).requires_grad_()

    def loss() -> Tensor:
        weights = signs * roots**2
        return _loss(features @ weights, right) + _RIDGE * (weights**2).sum()

    minimise([roots], loss)
    return signs * roots.detach() ** 2


def _loss(scores: Tensor, right: Tensor) -> Tensor:
    """Returns the mean negative log probability of the right passages."""
    chosen = scores.masked_fill(~right, float("-inf")).logsumexp(1)
    return (scores.logsumexp(1) - chosen).mean()
