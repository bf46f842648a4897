"""Fits the rules of early stopping on held-out training questions.

A rule (`winnow.domain.stopping`) weighs three features: the best score so far, the hybrid distance
of the next passage, and the gap between this distance and that of the first passage. The weights
come from a logistic regression of whether a later passage wins. The bar, the score from which
reading stops, is the lowest at which the loss of exact match stays within the promised limit. There
are too few questions to count such small losses, so the loss is estimated: the share of changed
answers times an upper estimate of the cost of a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from models.assemble import ScoreWeights
from models.measuring.calibrate import Candidates, scores_of
from models.measuring.fitting import fit_logistic
from winnow.domain.stopping import StoppingRule, wave_ends

FIRST_STOP = 1
LOSSES = (0.1, 0.3, 1.0)
_BARS = 300
_RIDGE = 1e-3
_MIN_DIVISOR = 1e-3

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRule:
    """A rule of early stopping, and its effect on training questions."""

    max_loss: float
    """Promised maximum loss of exact match, in points."""
    rule: StoppingRule
    lost: float
    """Measured loss of exact match, in points."""
    expected: float
    """Upper estimate of the loss of exact match on other questions, in points."""
    read: float
    """Mean number of passages read."""


@dataclass(frozen=True, slots=True)
class _Readings:
    """Reader outputs, [questions, passages], with passages in the order in which they are read."""

    scores: Floats
    hybrid_distances: Floats
    is_right: NDArray[np.bool_]


def fit_stopping_rules(
    candidates: Candidates, score: ScoreWeights, passages: int, losses: Sequence[float] = LOSSES
) -> list[FittedRule]:
    """Returns, for each promised loss, the rule that keeps it and reads the fewest passages."""
    readings = _Readings(
        scores_of(candidates.features, score)[:, :passages],
        candidates.hybrid_distances[:, :passages],
        candidates.is_right[:, :passages],
    )
    stops = [end for end in wave_ends(passages, FIRST_STOP) if end < passages]
    nearness, gap = _fit_weights(readings, stops)
    values = {
        stop: _stop_features(readings, stop) @ np.array([1.0, nearness, gap]) for stop in stops
    }
    every = np.concatenate(list(values.values()))
    bars = np.quantile(every[np.isfinite(every)], np.linspace(0, 1, _BARS))
    cost = _cost_of_change(readings, stops[0])
    rules = [
        _measure_rule(readings, values, StoppingRule(nearness, gap, float(bar), FIRST_STOP), cost)
        for bar in (*bars, np.nextafter(bars[-1], np.inf))
    ]
    return [
        replace(
            min((rule for rule in rules if rule.expected <= loss), key=lambda rule: rule.read),
            max_loss=loss,
        )
        for loss in losses
    ]


def _stop_features(readings: _Readings, stop: int) -> Floats:
    """Returns the three features of the rule after `stop` passages, [questions, 3]."""
    unread = readings.hybrid_distances[:, stop]
    best = readings.scores[:, :stop].max(1)
    return np.stack([best, unread, unread - readings.hybrid_distances[:, 0]], axis=1)


def _fit_weights(readings: _Readings, stops: Sequence[int]) -> tuple[float, float]:
    """Returns the weights of distance and gap relative to the weight of the score.

    The weights are fitted by logistic regression over all stops.
    """
    features = np.concatenate([_stop_features(readings, stop) for stop in stops])
    wins = np.concatenate([_later_wins(readings, stop) for stop in stops])
    has_answer = np.isfinite(features[:, 0])  # no passage before the stop may have a span
    features, wins = features[has_answer], wins[has_answer]
    spread = torch.tensor(np.maximum(features.std(0), _MIN_DIVISOR))
    inputs = torch.tensor(features - features.mean(0)) / spread
    targets = torch.tensor(wins.astype(np.float64))
    slopes, _ = fit_logistic(inputs, targets, (-1.0, -1.0, -1.0), _RIDGE)
    score, nearness, gap = (-slopes / spread).tolist()
    return nearness / max(score, _MIN_DIVISOR), gap / max(score, _MIN_DIVISOR)


def _later_wins(readings: _Readings, stop: int) -> NDArray[np.bool_]:
    """Returns whether a passage after `stop` has the best score, [questions]."""
    scores = readings.scores
    later: NDArray[np.bool_] = scores[:, stop:].max(1) > scores[:, :stop].max(1)
    return later


def _cost_of_change(readings: _Readings, stop: int) -> float:
    """Returns an upper estimate of the exact match, 0 to 1, that a changed answer loses.

    The estimate is the mean loss plus its standard error if all questions stop at `stop`.
    """
    is_changed = _later_wins(readings, stop)
    lost = _loss_by_question(readings, np.full(len(is_changed), stop))
    error = lost.std() / np.sqrt(len(lost))
    return float(lost.mean() + error) / max(float(is_changed.mean()), _MIN_DIVISOR)


def _loss_by_question(readings: _Readings, ends: NDArray[np.int64]) -> Floats:
    """Returns the loss of each question, -1 to 1, if it stops after `ends` passages."""
    rows, passages = np.arange(len(ends)), readings.scores.shape[1]
    is_read = np.arange(passages) < ends[:, None]
    stopped = np.where(is_read, readings.scores, -np.inf).argmax(1)
    complete = readings.scores.argmax(1)
    lost: Floats = (
        readings.is_right[rows, complete].astype(np.float64) - readings.is_right[rows, stopped]
    )
    return lost


def _measure_rule(
    readings: _Readings, values: dict[int, Floats], rule: StoppingRule, cost: float
) -> FittedRule:
    """Measures a rule. `values` are the weighted features of each question, by stop."""
    questions, passages = readings.scores.shape
    ends = np.full(questions, passages)
    for stop in sorted(values, reverse=True):
        ends[values[stop] >= rule.bar] = stop
    changed = float((readings.scores.argmax(1) >= ends).mean())
    lost = 100 * float(_loss_by_question(readings, ends).mean())
    return FittedRule(
        max_loss=0.0, rule=rule, lost=lost, expected=100 * changed * cost, read=float(ends.mean())
    )
