"""The probability that an answer is right, fitted on training questions that no model has seen.

Every question counts twice: as it is, and without the passages that contain its answer, as if they
were not in the index. Otherwise no figure could tell what an answer to a question that nothing
answers looks like. The more passages an index has, the likelier a wrong one looks right; so they
are thinned out to those of an index of the usual size. Pure.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import Score
from models.measuring.calibrate import SIGNS, Candidates
from models.measuring.fitting import minimise
from winnow.domain.confidence import Confidence

SHARE = 0.1
"""Share of passages without an answer that are kept: 67,000 of the 668,630 of `mine-ranking`."""
_DRAWS = 3
"""Simulated indexes of that size."""
_SEED = 1
_RIDGE = 1e-4
_LEAST_SPREAD = 1e-6


def fit_confidence(
    found: Candidates, score: Score, passages: int, share: float = SHARE
) -> Confidence:
    """Fits a logistic regression of the best answer among `passages` passages.

    Only questions with an answer among the retrieved passages count.
    """
    weights = np.array([score.relevance, score.span, score.distance])
    answered = found.bearing.any(1)
    features, right = found.features[answered], found.right[answered]
    bearing = found.bearing[answered]
    generator = np.random.default_rng(_SEED)
    best = []
    for _ in range(_DRAWS):
        drawn = bearing | (generator.random(bearing.shape) < share)
        left = drawn & (drawn.cumsum(1) <= passages)
        best += [
            _best(features, features @ weights, kept, right) for kept in (left, left & ~bearing)
        ]
    given = np.concatenate([features for features, _ in best])
    labels = np.concatenate([right for _, right in best])
    spread = np.maximum(given.std(0), _LEAST_SPREAD)
    slopes, bias = _regress(given / spread, labels)
    relevance, span, distance = (slopes / spread).tolist()
    return Confidence(relevance, span, distance, bias)


def _best(
    features: NDArray[np.float64],
    scores: NDArray[np.float64],
    kept: NDArray[np.bool_],
    right: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Features of the best answer of every question that has any, and whether it is right."""
    able = kept.any(1)
    best = np.where(kept, scores, -np.inf)[able].argmax(1)
    rows = np.arange(len(best))
    return features[able][rows, best], right[able][rows, best]


def _regress(
    given: NDArray[np.float64], labels: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    inputs, target = torch.tensor(given), torch.tensor(labels, dtype=torch.float64)
    signs = torch.tensor(SIGNS, dtype=torch.float64)
    roots = torch.full((len(SIGNS),), 0.5, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)

    def loss() -> torch.Tensor:
        weights = signs * roots**2
        wrong = torch.nn.functional.binary_cross_entropy_with_logits(
            inputs @ weights + bias, target
        )
        return wrong + _RIDGE * (weights**2).sum()

    minimise([roots, bias], loss)
    weights: NDArray[np.float64] = (signs * roots.detach() ** 2).numpy()
    return weights, float(bias.detach())
