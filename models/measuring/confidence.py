"""Fits the probability that an answer is right, on held-out questions of one or several kinds.

If all questions of a kind have an answer, every question counts twice: with all passages, and
without the passages that contain its answer. Without these passages, the question is an example of
an unanswerable one. Each kind of text counts equally, however many questions it has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import ScoreWeights
from models.data import DataError
from models.measuring.calibrate import SIGNS, Candidates, scores_of
from models.measuring.fitting import fit_logistic
from winnow.domain.confidence import Confidence
from winnow.quoting import many

SHARE = 0.1
"""Share of the passages without an answer that are kept: 67,000 of the 668,630 of `mine-ranking`.
"""
_SIMULATED_INDEXES = 3
_FEATURES = 3
"""Number of features. Words are left out, since BM25 depends on the question and the collection."""
_REMOVED = 0.3
"""Weight of a question without the passages that contain its answer. With them, it counts 1.

So about a quarter of the questions have no answer.
"""
_SEED = 1
_RIDGE = 1e-4
_MIN_SPREAD = 1e-6
_KEPT = 0.95
"""Share of the right answers above the minimum confidence."""

Floats = NDArray[np.float64]


class AnswerPart(Enum):
    """The part of an answer whose confidence is fitted."""

    SPAN = "span"
    SENTENCE = "sentence"


@dataclass(frozen=True, slots=True)
class BestAnswers:
    """The best answer of every question of a kind, with and without its answer's passages."""

    features: Floats
    """Relevance, span and distance, [answers, 3]."""
    is_right: Floats
    """1 for right answers, else 0."""
    weights: Floats
    """Weight of each answer. They sum to 1."""

    @classmethod
    def of(
        cls,
        candidates: Candidates,
        score: ScoreWeights,
        part: AnswerPart,
        passages: int,
        share: float = 1.0,
    ) -> "BestAnswers":
        """Returns the best answers among the first `passages` passages.

        The next candidates take the place of passages that are left out. So there should be about
        twice as many.
        `share` is the share of the passages without an answer that are kept. In a larger index, a
        wrong answer scores high more often, so a share simulates a smaller index.
        """
        has_answer = candidates.has_answer
        scores = scores_of(candidates.features, score)
        is_right = candidates.is_right if part is AnswerPart.SPAN else candidates.is_right_sentence
        generator = np.random.default_rng(_SEED)
        draws = 1 if share == 1 else _SIMULATED_INDEXES
        found: list[tuple[Floats, Floats, Floats]] = []
        for _ in range(draws):
            in_index = has_answer | (generator.random(has_answer.shape) < share)
            indexes = [(in_index, 1.0)]
            if candidates.is_answerable.all():
                indexes.append((in_index & ~has_answer, _REMOVED))
            for kept, weight in indexes:
                mask = kept & (kept.cumsum(1) <= passages) & candidates.has_span
                rows = np.flatnonzero(mask.any(1) & (has_answer.any(1) | (weight == 1)))
                best = np.where(mask, scores, -np.inf)[rows].argmax(1)
                found.append(
                    (
                        candidates.features[rows, best][:, :_FEATURES],
                        is_right[rows, best].astype(np.float64),
                        np.full(len(rows), weight),
                    )
                )
        features, right, weights = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls(features, right, weights / weights.sum())


def fit_confidence(kinds: Sequence[BestAnswers]) -> Confidence:
    """Fits a logistic regression on the best answers of each kind of text."""
    inputs = np.concatenate([each.features for each in kinds])
    spread = np.maximum(inputs.std(0), _MIN_SPREAD)
    slopes, bias = fit_logistic(
        torch.tensor(inputs / spread),
        torch.tensor(np.concatenate([each.is_right for each in kinds])),
        SIGNS[:_FEATURES],
        _RIDGE,
        torch.tensor(np.concatenate([each.weights for each in kinds]) / len(kinds)),
    )
    relevance, span, distance = (slopes.numpy() / spread).tolist()
    return Confidence(relevance, span, distance, bias)


def fit_min_confidence(
    kinds: Mapping[str, Candidates], score: ScoreWeights, confidence: Confidence, passages: int
) -> float:
    """Returns the confidence that most right spans reach, if the kinds have equally many.

    Every question has all of its passages.

    Raises:
        DataError: no question of a kind has a right best answer.

    """
    slopes = [confidence.relevance, confidence.span, confidence.distance]
    values, weights = [], []
    for kind, candidates in kinds.items():
        features, is_right = candidates.features[:, :passages], candidates.is_right[:, :passages]
        best = scores_of(features, score).argmax(1)
        rows = np.arange(len(best))
        right = is_right[rows, best]
        odds = features[rows, best][right][:, :_FEATURES] @ np.array(slopes) + confidence.bias
        if not len(odds):
            raise DataError(
                f"{kind}: the best answer to none of {many(len(best), 'question')} is right: check "
                "the accepted answers, or leave these questions out"
            )
        values.append(1 / (1 + np.exp(-odds)))
        weights.append(np.full(len(odds), 1 / len(odds)))
    every, weight = np.concatenate(values), np.concatenate(weights)
    order = every.argsort()
    kept = weight[order].cumsum() > (1 - _KEPT) * len(kinds)
    return float(every[order][kept.argmax()])
