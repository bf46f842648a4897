"""How likely an answer is right, fitted on training questions that no model has seen.

Every question counts twice: as it is, and without the passages that contain its answer, as if they
were not in the index. Otherwise no figure could tell what an answer to a question that nothing
answers looks like. Pure.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import Score
from models.measuring.calibrate import Candidates
from winnow.domain.confidence import Confidence

_RIDGE = 1e-4
_LEAST_SPREAD = 1e-6


def fit_confidence(found: Candidates, score: Score, passages: int) -> Confidence:
    """The logistic regression of the best answers among so many passages."""
    weights = np.array([score.relevance, score.span, score.distance])
    features = found.features[:, :passages]
    bearing, right = found.bearing[:, :passages], found.right[:, :passages]
    best = [
        _best(features, features @ weights, kept, right) for kept in (np.ones_like(right), ~bearing)
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
    weights = torch.zeros(given.shape[1] + 1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        odds = inputs @ weights[:-1] + weights[-1]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(odds, target)
        loss = loss + _RIDGE * (weights[:-1] ** 2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    found: NDArray[np.float64] = weights.detach().numpy()
    return found[:-1], float(found[-1])
