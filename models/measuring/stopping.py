"""Rules for early stopping: whether a later passage still wins, fitted on training questions.

The rule (`winnow.domain.stopping`) weighs the best score so far, the hybrid distance of the next
passage and how much further that is than the first. The weights are those of a logistic
regression: does any later passage win? The bar is as low as the promised loss of exact match
allows, on questions that no model has seen. A few hundred of them are too few to count losses of a
third of a percent; that of a rule is estimated as the share of answers that it changes, of which
there are many more, times what a changed answer costs, and its standard error. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import Score
from models.measuring.calibrate import Candidates
from models.measuring.fitting import minimise
from winnow.domain.stopping import StoppingRule, wave_ends

FIRST_LOOK = 1
LOSSES = (0.1, 0.3, 1.0)
_STEPS = 300
_RIDGE = 1e-3
_LEAST = 1e-3

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRule:
    """A rule's effect on training questions."""

    max_loss: float
    rule: StoppingRule
    lost: float
    """Loss of exact match, in percent."""
    expected: float
    """Upper estimate of the loss of exact match on other questions, in percent."""
    read: float
    """Mean of passages read."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Scores, hybrid distances and whether answers are right, [questions, passages], in the order
    of reading.
    """

    scores: Floats
    hybrid_distances: Floats
    right: NDArray[np.bool_]


def calibrate(
    found: Candidates, score: Score, passages: int, losses: Sequence[float] = LOSSES
) -> list[FittedRule]:
    """Returns the rule that reads least for each promised loss."""
    weights = np.array([score.relevance, score.span, score.distance])
    read = _Read(
        (found.features @ weights)[:, :passages],
        found.hybrid_distances[:, :passages],
        found.right[:, :passages],
    )
    looks = [end for end in wave_ends(passages, FIRST_LOOK) if end < passages]
    nearness, gap = _weights(read, looks)
    marks = {look: _marks(read, look) @ np.array([1.0, nearness, gap]) for look in looks}
    bars = np.quantile(np.concatenate(list(marks.values())), np.linspace(0, 1, _STEPS))
    cost = _cost_of_change(read, looks[0])
    tried = [
        _effect(read, marks, StoppingRule(nearness, gap, float(bar), FIRST_LOOK), cost)
        for bar in (*bars, np.nextafter(bars[-1], np.inf))
    ]
    chosen = []
    for loss in losses:
        kept = (each for each in tried if each.expected <= loss)
        chosen.append(replace(min(kept, key=lambda each: each.read), max_loss=loss))
    return chosen


def _marks(read: _Read, look: int) -> Floats:
    """Best score, hybrid distance of the next, and how much further it is: [questions, 3]."""
    unread = read.hybrid_distances[:, look]
    best = read.scores[:, :look].max(1)
    return np.stack([best, unread, unread - read.hybrid_distances[:, 0]], axis=1)


def _weights(read: _Read, looks: Sequence[int]) -> tuple[float, float]:
    """Returns the weights of distance and gap, relative to that of the score.

    They are fitted by logistic regression over all stops.
    """
    marks = np.concatenate([_marks(read, look) for look in looks])
    wins = np.concatenate([_later_wins(read, look) for look in looks])
    spread = torch.tensor(np.maximum(marks.std(0), _LEAST))
    given = torch.tensor(marks - marks.mean(0)) / spread
    target = torch.tensor(wins.astype(np.float64))
    roots = torch.full((3,), 0.5, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)

    def loss() -> torch.Tensor:
        weights = roots**2  # none of the three ever counts for reading on
        wrong = torch.nn.functional.binary_cross_entropy_with_logits(bias - given @ weights, target)
        return wrong + _RIDGE * (weights**2).sum()

    minimise([roots, bias], loss)
    score, nearness, gap = (roots.detach() ** 2 / spread).tolist()
    return nearness / max(score, _LEAST), gap / max(score, _LEAST)


def _later_wins(read: _Read, look: int) -> NDArray[np.bool_]:
    later: NDArray[np.bool_] = read.scores[:, look:].max(1) > read.scores[:, :look].max(1)
    return later


def _cost_of_change(read: _Read, look: int) -> float:
    """Returns exact match, 0 to 1, that a question loses at most on average where reading on would
    have changed its answer; from stopping all of them at `look`.
    """
    changed = _later_wins(read, look)
    lost = _lost(read, np.full(len(changed), look))
    error = lost.std() / np.sqrt(len(lost))
    return float(lost.mean() + error) / max(float(changed.mean()), _LEAST)


def _lost(read: _Read, ends: NDArray[np.int64]) -> Floats:
    """Returns the loss of each question, -1 to 1, if it stops after `ends` passages."""
    rows, passages = np.arange(len(ends)), read.scores.shape[1]
    kept = np.where(np.arange(passages) < ends[:, None], read.scores, -np.inf).argmax(1)
    whole = read.scores.argmax(1)
    lost: Floats = read.right[rows, whole].astype(np.float64) - read.right[rows, kept]
    return lost


def _effect(read: _Read, marks: dict[int, Floats], rule: StoppingRule, cost: float) -> FittedRule:
    questions, passages = read.scores.shape
    ends = np.full(questions, passages)
    for look in sorted(marks, reverse=True):
        ends[marks[look] >= rule.bar] = look
    changed = float((read.scores.argmax(1) >= ends).mean())
    lost = 100 * float(_lost(read, ends).mean())
    return FittedRule(
        max_loss=0.0, rule=rule, lost=lost, expected=100 * changed * cost, read=float(ends.mean())
    )
