"""Fits the probability that an answer is right, on held-out training questions.

Every question counts twice: with all passages, and without the passages that contain its answer.
Without these passages, the question is an example of an unanswerable one. In a larger index, a
wrong answer scores high more often, so passages are dropped at random to simulate an index of the
usual size.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import ScoreWeights
from models.measuring.calibrate import SIGNS, Candidates
from models.measuring.fitting import fit_logistic
from winnow.domain.confidence import Confidence

SHARE = 0.1
"""Share of the passages without an answer that are kept: 67,000 of the 668,630 of `mine-ranking`.
"""
_SIMULATED_INDEXES = 3
_SEED = 1
_RIDGE = 1e-4
_MIN_SPREAD = 1e-6


def fit_confidence(
    candidates: Candidates, score: ScoreWeights, passages: int, share: float = SHARE
) -> Confidence:
    """Fits a logistic regression on the best answer among the first `passages` passages.

    Uses only questions with an answer among the retrieved passages.
    """
    weights = np.array([score.relevance, score.span, score.distance])
    is_answerable = candidates.has_answer.any(1)
    features, is_right = candidates.features[is_answerable], candidates.is_right[is_answerable]
    has_answer = candidates.has_answer[is_answerable]
    scores = features @ weights
    generator = np.random.default_rng(_SEED)
    best = []
    for _ in range(_SIMULATED_INDEXES):
        in_index = has_answer | (generator.random(has_answer.shape) < share)
        is_read = in_index & (in_index.cumsum(1) <= passages)
        best += [
            _best_answers(features, scores, mask, is_right)
            for mask in (is_read, is_read & ~has_answer)
        ]
    inputs = np.concatenate([inputs for inputs, _ in best])
    targets = np.concatenate([targets for _, targets in best])
    spread = np.maximum(inputs.std(0), _MIN_SPREAD)
    slopes, bias = fit_logistic(
        torch.tensor(inputs / spread), torch.tensor(targets, dtype=torch.float64), SIGNS, _RIDGE
    )
    relevance, span, distance = (slopes.numpy() / spread).tolist()
    return Confidence(relevance, span, distance, bias)


def _best_answers(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    mask: NDArray[np.bool_],
    is_right: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns features of the best answer of every question, and whether the answer is right.

    Only passages in `mask` count. Questions without a passage in `mask` are left out.
    """
    has_passages = mask.any(1)
    best = np.where(mask, scores, -np.inf)[has_passages].argmax(1)
    rows = np.arange(len(best))
    return features[has_passages][rows, best], is_right[has_passages][rows, best]
