"""Tests of fitting the probability that an answer is right."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import reading

from models.assemble import ScoreWeights
from models.data import DataError
from models.measuring.calibrate import Candidates
from models.measuring.confidence import (
    AnswerPart,
    BestAnswers,
    fit_confidence,
    fit_min_confidence,
)
from winnow.domain.confidence import Confidence
from winnow.domain.reading import Reading

SCORE = ScoreWeights(1.0, 0.0, 0.0)


def found(questions: int = 2000, passages: int = 5) -> Candidates:
    """One passage of each bears the answer; the surer the reader, the more often it is right."""
    generator = np.random.default_rng(1)
    bearing = np.zeros((questions, passages), np.bool_)
    bearing[np.arange(questions), generator.integers(0, passages, questions)] = True
    features = generator.normal(size=(questions, passages, 4))
    features[..., 0] += 3 * bearing
    right = bearing & (generator.random(bearing.shape) < 1 / (1 + np.exp(2 - features[..., 0])))
    return Candidates(
        features=features,
        hybrid_distances=features[..., 2],
        word_shares=features[..., 3],
        is_right=right,
        has_answer=bearing,
        is_right_sentence=bearing,
        is_answerable=np.ones(questions, np.bool_),
    )


def fitted(candidates: Candidates, share: float = 1.0) -> Confidence:
    return fit_confidence([BestAnswers.of(candidates, SCORE, AnswerPart.SPAN, 5, share)])


def read_with(relevance: float) -> Reading:
    return replace(reading("p"), relevance=relevance, span_score=0.0, distance=0.0)


def test_confidence_is_the_share_of_right_answers() -> None:
    best = BestAnswers.of(found(), SCORE, AnswerPart.SPAN, 5)
    confidence = fit_confidence([best])
    slopes = [confidence.relevance, confidence.span, confidence.distance]
    said = 1 / (1 + np.exp(-(best.features @ np.array(slopes) + confidence.bias)))
    sure = said > np.median(said)
    for part in (sure, ~sure):
        weights = best.weights[part] / best.weights[part].sum()
        assert abs(said[part] @ weights - best.is_right[part] @ weights) < 0.03


def test_confidence_grows_with_the_readers_scores() -> None:
    assert fitted(found()).relevance > 0


def test_a_sentence_is_right_more_often_than_its_span() -> None:
    candidates = found()
    sentence = BestAnswers.of(candidates, SCORE, AnswerPart.SENTENCE, 5)
    answer = read_with(2.0)
    assert fit_confidence([sentence]).of(answer) > fitted(candidates).of(answer)


def test_a_question_with_the_answer_in_all_passages_counts_once() -> None:
    candidates = found(200)
    every = np.ones_like(candidates.has_answer)
    best = BestAnswers.of(replace(candidates, has_answer=every), SCORE, AnswerPart.SPAN, 5)
    assert len(best.features) == 200


def test_a_question_without_an_answer_counts_once_and_as_wrong() -> None:
    candidates = found(200)
    unanswerable = np.arange(200) % 4 == 0
    candidates.has_answer[unanswerable] = candidates.is_right[unanswerable] = False
    asked = replace(candidates, is_answerable=~unanswerable)
    best = BestAnswers.of(asked, SCORE, AnswerPart.SPAN, 5)
    assert len(best.features) == 200, "the others keep their passages"
    assert not best.is_right[unanswerable].any()


def test_each_kind_of_text_counts_equally() -> None:
    """A few questions that are never answered lower the confidence of many."""
    candidates = found()
    wrong = replace(found(50), is_right=np.zeros((50, 5), np.bool_))
    kinds = [BestAnswers.of(each, SCORE, AnswerPart.SPAN, 5) for each in (candidates, wrong)]
    answer = read_with(3.0)
    assert fit_confidence(kinds).of(answer) < 0.75 * fitted(candidates).of(answer)


def test_most_right_spans_reach_the_minimum_confidence() -> None:
    candidates = found()
    confidence = fitted(candidates)
    least = fit_min_confidence({"text": candidates}, SCORE, confidence, 5)
    best = BestAnswers.of(candidates, SCORE, AnswerPart.SPAN, 5)
    with_all_passages = best.weights == best.weights.max()
    right = best.features[with_all_passages & (best.is_right == 1)]
    kept = [confidence.of(read_with(relevance)) >= least for relevance in right[:, 0].tolist()]
    assert 0.9 < np.mean(kept) < 1


def test_a_kind_without_a_right_best_answer_is_refused_with_its_name() -> None:
    """A passage has a right span there, but another one is always best."""
    never = found(50)
    never.features[:, 0, 0] = 100
    never.is_right[:, 0] = False
    kinds = {"text": found(), "manuals": never}
    with pytest.raises(DataError, match="manuals: the best answer to none of 50 questions"):
        fit_min_confidence(kinds, SCORE, Confidence(1, 0, 0, 0), 5)


def test_in_a_smaller_index_the_same_answer_is_likelier_right() -> None:
    small, large = (fitted(found(passages=20), share) for share in (0.05, 1.0))
    assert small.of(read_with(2.0)) > large.of(read_with(2.0))


def test_a_weight_with_the_wrong_sign_is_zero() -> None:
    candidates = found()
    candidates.features[..., 1] -= 3 * candidates.is_right  # the surer the span, the wronger
    assert fitted(candidates).span == pytest.approx(0, abs=1e-3)
