"""Tests of fitting the rules of early stopping."""

import numpy as np

from models.assemble import ScoreWeights
from models.measuring.calibrate import Candidates
from models.measuring.early_stopping import fit_stopping_rules

SCORE = ScoreWeights(relevance=1.0, span=0.0, distance=-1.0)


def found(questions: int = 400, passages: int = 12) -> Candidates:
    """The nearer a passage, the likelier it is right; relevance tells which is."""
    generator = np.random.default_rng(2)
    right = generator.random((questions, passages)) < 0.5 / (1 + np.arange(passages))
    relevance = generator.normal(size=right.shape) + 6 * right
    distances = np.sort(generator.random(right.shape) * 2, axis=1)
    nothing = np.zeros_like(relevance)
    return Candidates(
        features=np.stack([relevance, nothing, distances, nothing], axis=-1),
        hybrid_distances=distances,
        word_shares=nothing,
        is_right=right,
        has_answer=right,
        is_right_sentence=right,
        is_answerable=np.any(right, axis=1),
    )


def test_a_larger_accuracy_budget_reads_less_and_keeps_its_promise() -> None:
    rules = fit_stopping_rules(found(), SCORE, passages=10)
    assert [rule.max_loss for rule in rules] == [0.1, 0.3, 1.0]
    assert all(rule.expected <= rule.max_loss for rule in rules)
    read = [rule.read for rule in rules]
    assert read == sorted(read, reverse=True)
    assert read[-1] < 8


def test_scores_without_information_never_stop_early() -> None:
    candidates = found()
    candidates.features[..., 0] = 0.0
    candidates.features[..., 2] = 1.0
    candidates.hybrid_distances[:] = 1.0
    only = fit_stopping_rules(candidates, SCORE, passages=10, losses=(0.0,))
    assert only[0].lost <= 0
