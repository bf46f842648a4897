"""How far an unread passage may reach, fitted on training questions.

The rule (`winnow.domain.stopping`) has one parameter. The smaller it is, the sooner reading stops,
and the more often a later passage would have given the right answer. It is chosen as small as the
promised loss of exact match allows, on questions that no model has seen. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.assemble import Score
from models.measuring.calibrate import Candidates
from winnow.domain.stopping import StoppingRule, wave_ends

FIRST_LOOK = 2
LOSSES = (0.1, 0.3, 1.0)
_STEPS = 200


@dataclass(frozen=True, slots=True)
class Stopped:
    """A rule's effect on training questions."""

    max_loss: float
    reach: float
    lost: float
    """Exact match, in percent."""
    read: float
    """Mean of passages read."""


def calibrate(
    found: Candidates, score: Score, passages: int, losses: Sequence[float] = LOSSES
) -> list[Stopped]:
    """For each promised loss the rule that reads least."""
    scores, distances = _ordered(found, score)
    right = _ordered_right(found)
    tried = [
        _effect(scores, distances, right, StoppingRule(reach, score.distance), passages)
        for reach in _reaches(scores, distances, score.distance)
    ]
    chosen = []
    for loss in losses:
        allowed = [each for each in tried if each.lost <= loss]
        best = min(allowed, key=lambda each: each.read)
        chosen.append(Stopped(loss, best.reach, best.lost, best.read))
    return chosen


def _effect(
    scores: NDArray[np.float64],
    distances: NDArray[np.float64],
    right: NDArray[np.bool_],
    rule: StoppingRule,
    passages: int,
) -> Stopped:
    rows = np.arange(len(scores))
    read = np.array(
        [_passages_read(rule, *row, passages) for row in zip(scores, distances, strict=True)]
    )
    kept = np.where(np.arange(scores.shape[1]) < read[:, None], scores, -np.inf).argmax(1)
    whole = scores[:, :passages].argmax(1)
    lost = 100 * float(right[rows, whole].mean() - right[rows, kept].mean())
    return Stopped(0.0, rule.reach, lost, float(read.mean()))


def _passages_read(
    rule: StoppingRule, scores: NDArray[np.float64], distances: NDArray[np.float64], passages: int
) -> int:
    for end in wave_ends(passages, FIRST_LOOK):
        if end == passages or rule.safe(float(scores[:end].max()), float(distances[end])):
            return end
    return passages


def _ordered(found: Candidates, score: Score) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and distances, the nearest passage of each question first."""
    order = _order(found)
    weights = np.array([score.relevance, score.span, score.distance])
    scores = np.take_along_axis(found.features @ weights, order, 1)
    return scores, np.take_along_axis(found.features[..., 2], order, 1)


def _ordered_right(found: Candidates) -> NDArray[np.bool_]:
    return np.take_along_axis(found.right, _order(found), 1)


def _order(found: Candidates) -> NDArray[np.int64]:
    return found.features[..., 2].argsort(1, kind="stable")


def _reaches(
    scores: NDArray[np.float64], distances: NDArray[np.float64], weight: float
) -> list[float]:
    """Reaches to try, up to one that no passage of the sample exceeds."""
    parts = scores - weight * distances
    return [float(q) for q in np.quantile(parts, np.linspace(0.3, 1, _STEPS))]
