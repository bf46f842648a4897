"""Tests of fitting the probability that an answer is right."""

import numpy as np
import pytest

from models.assemble import ScoreWeights
from models.measuring.calibrate import Candidates
from models.measuring.confidence import fit_confidence
from winnow.domain.confidence import Confidence
from winnow.domain.passage import Passage
from winnow.domain.reading import Reading

SCORE = ScoreWeights(1.0, 0.0, 0.0)


def found(questions: int = 2000, passages: int = 5) -> Candidates:
    """One passage of each bears the answer; the surer the reader, the more often it is right."""
    generator = np.random.default_rng(1)
    bearing = np.zeros((questions, passages), np.bool_)
    bearing[np.arange(questions), generator.integers(0, passages, questions)] = True
    features = generator.normal(size=(questions, passages, 3))
    features[..., 0] += 3 * bearing
    right = bearing & (generator.random(bearing.shape) < 1 / (1 + np.exp(2 - features[..., 0])))
    return Candidates(features, features[..., 2], right, bearing)


def confidences(candidates: Candidates, fitted: Confidence) -> tuple[list[float], list[bool]]:
    said, right = [], []
    for kept in (np.ones_like(candidates.has_answer), ~candidates.has_answer):
        best = np.where(kept, candidates.features[..., 0], -np.inf).argmax(1)
        for row, place in enumerate(best):
            relevance, span, distance = candidates.features[row, place].tolist()
            read = Reading(
                passage=Passage("", "", "x"),
                start=0,
                end=1,
                score=0.0,
                relevance=relevance,
                span_score=span,
                distance=distance,
                hybrid_distance=0.0,
            )
            said.append(fitted.of(read))
            right.append(bool(candidates.is_right[row, place]))
    return said, right


def test_confidence_is_the_share_of_right_answers() -> None:
    candidates = found()
    said, right = confidences(candidates, fit_confidence(candidates, SCORE, 5, share=1))
    assert abs(np.mean(said) - np.mean(right)) < 0.01
    sure = np.array(said) > np.median(said)
    for part in (sure, ~sure):
        assert abs(np.array(said)[part].mean() - np.array(right)[part].mean()) < 0.03


def test_confidence_grows_with_the_readers_scores() -> None:
    assert fit_confidence(found(), SCORE, 5).relevance > 0


def test_a_question_with_the_answer_in_all_passages_counts_once() -> None:
    candidates = found(200)
    every = np.ones_like(candidates.has_answer)
    fitted = fit_confidence(
        Candidates(candidates.features, candidates.hybrid_distances, candidates.is_right, every),
        SCORE,
        5,
    )
    assert np.isfinite([fitted.relevance, fitted.span, fitted.distance, fitted.bias]).all()


def test_in_a_smaller_index_the_same_answer_is_likelier_right() -> None:
    candidates = found(passages=20)
    small, large = (fit_confidence(candidates, SCORE, 5, share) for share in (0.05, 1.0))
    read = Reading(
        passage=Passage("", "", "x"),
        start=0,
        end=1,
        score=0.0,
        relevance=2.0,
        span_score=0.0,
        distance=0.0,
        hybrid_distance=0.0,
    )
    assert small.of(read) > large.of(read)


def test_a_weight_with_the_wrong_sign_is_zero() -> None:
    candidates = found()
    candidates.features[..., 1] -= 3 * candidates.is_right  # the surer the span, the wronger
    assert fit_confidence(candidates, SCORE, 5).span == pytest.approx(0, abs=1e-3)
