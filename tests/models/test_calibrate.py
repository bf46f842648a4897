"""Tests of fitting the final score and the weight of matching words."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from models.assemble import ScoreWeights
from models.data import DataError, Passage
from models.measuring.calibrate import (
    Candidates,
    RankedPassage,
    best_passages,
    exact_match_by_passages,
    fit_score,
    read_candidates,
    sample_questions,
    scores_of,
)
from models.measuring.fitting import fit_signed_weights
from models.measuring.judging import JudgedQuestion
from models.measuring.late_ranking import (
    MAX_TOKEN_WEIGHT,
    LateCandidates,
    LateWeights,
    fit_late_weights,
)
from models.measuring.retrieved import check_retrieved
from models.measuring.retrieving import (
    MAX_WORD_WEIGHT,
    NearestPassages,
    fit_word_weight,
    recall_by_passages,
)
from models.mining.mine import TrainingQuestion
from models.steps.reading_fit import ReadingFit, fit_reading
from winnow.domain.confidence import Confidence
from winnow.domain.passage import Passage as Stored
from winnow.domain.reading import Reading


def found(questions: int = 300, passages: int = 10, seed: int = 1) -> Candidates:
    """Relevance knows what is right; span and words a little, and distance a little, negatively."""
    generator = np.random.default_rng(seed)
    right = generator.random((questions, passages)) < 0.15
    noise = generator.normal(size=(questions, passages, 4))
    features = noise + right[..., None] * np.array([3.0, 1.0, -1.0, 1.0])
    scaled = features * np.array([1.0, 4.0, 0.1, 5.0])
    return Candidates(
        features=scaled,
        hybrid_distances=scaled[..., 2],
        word_shares=scaled[..., 3] / 5,
        is_right=right,
        has_answer=right,
        is_right_sentence=right,
        is_answerable=np.any(right, axis=1),
    )


def test_weights_have_the_expected_signs() -> None:
    score = fit_score([found()])
    assert score.relevance > 0
    assert score.span > 0
    assert score.distance < 0
    assert score.words > 0


def test_a_weight_with_the_wrong_sign_is_zero() -> None:
    candidates = found()
    candidates.features[..., 0] *= -1
    assert fit_score([candidates]).relevance == pytest.approx(0, abs=1e-3)


def test_the_fit_is_at_least_as_accurate_as_relevance_alone() -> None:
    candidates = found()
    alone = exact_match_by_passages(candidates, ScoreWeights(1, 0, 0), [10])
    fitted = exact_match_by_passages(candidates, fit_score([candidates]), [10])
    assert fitted >= alone


def test_most_right_answers_stay_above_the_threshold() -> None:
    candidates = found()
    score = fit_score([candidates])
    values = scores_of(candidates.features, score)
    rows = np.arange(len(values))
    best = values.argmax(1)
    kept = values[rows, best][candidates.is_right[rows, best]] >= score.no_answer_below
    assert 0.9 < kept.mean() < 1


def test_calibration_without_a_right_answer_is_refused() -> None:
    never = np.zeros((3, 4), np.bool_)
    candidates = replace(found(3, 4), is_right=never)
    with pytest.raises(DataError, match="no correct answer to any of 3 training questions"):
        fit_score([found(), candidates])


def values(fit: ReadingFit) -> list[float]:
    """All numbers of the manifest's entries."""
    entry = fit.score_entry()
    confidences = [entry.pop(name) for name in ("confidence", "sentence_confidence")]
    every = [entry, *confidences, *fit.stopping_entries()]
    return [float(value) for each in every for value in each.values()]


def test_passages_without_a_span_spoil_no_fit() -> None:
    """A passage without tokens has none. Its score is minus infinity."""
    candidates = found(passages=20)
    without = ~candidates.is_right & (np.arange(20) % 7 == 0)
    candidates.features[without, 1] = -np.inf
    fit = fit_reading({"text": candidates}, [1.0], lambda _: None)
    assert np.isfinite(values(fit)).all()
    scores = scores_of(candidates.features, replace(fit.score, span=0.0))
    assert (np.isneginf(scores) == without).all()


def test_a_fit_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(DataError, match="not a number"):
        fit_signed_weights(torch.ones(2), lambda weights: (weights * torch.nan).sum())


def test_confidences_are_fitted_on_more_passages_than_score_and_stopping() -> None:
    """The further passages take the place of those with the answer."""
    candidates = replace(found(passages=20), is_answerable=np.ones(300, np.bool_))
    other = replace(candidates, features=candidates.features.copy())
    other.features[:, 10:, 0] += 1.0
    fit, changed = (
        fit_reading({"text": each}, [1.0], lambda _: None, score_passages=10)
        for each in (candidates, other)
    )
    assert changed.score == fit.score == fit_score([candidates.first(10)])
    assert changed.stopping_entries() == fit.stopping_entries()
    assert changed.confidence != fit.confidence


def test_each_kind_of_text_counts_equally() -> None:
    """A second kind where distance alone helps changes the weights, though it has few questions."""
    many, few = found(), found(30, seed=2)
    few.features[..., 0] = few.features[..., 1]  # relevance knows nothing there
    few.features[..., 2] = -0.1 * few.is_right
    alone, both = fit_score([many]), fit_score([many, few])
    assert both.distance / both.relevance < 2 * alone.distance / alone.relevance


def near(questions: int = 200, passages: int = 12) -> tuple[NearestPassages, NDArray[np.bool_]]:
    """Each question has one right passage: it is nearer, and has more of the words."""
    generator = np.random.default_rng(3)
    right = np.zeros((questions, passages), np.bool_)
    right[np.arange(questions), generator.integers(0, passages, questions)] = True
    distances = generator.random(right.shape) - 0.3 * right
    matches = 10 * generator.random(right.shape) + 4 * right
    return NearestPassages(np.tile(np.arange(passages), (questions, 1)), distances, matches), right


def test_helpful_words_have_a_positive_weight() -> None:
    found, right = near()
    weight = fit_word_weight(found, right)
    assert weight > 0
    alone, both = (recall_by_passages(found, right, each, [1, 12]) for each in (0.0, weight))
    assert both[0] > alone[0]
    assert alone[1] == both[1] == 100


def test_the_word_weight_is_bounded_if_distance_is_useless() -> None:
    found, right = near()
    nothing = NearestPassages(found.indices, np.zeros_like(found.distances), found.matches)
    assert fit_word_weight(nothing, right) == MAX_WORD_WEIGHT


def test_fitting_without_any_right_passage_is_refused() -> None:
    found, right = near()
    with pytest.raises(DataError, match="train the encoder"):
        fit_word_weight(found, np.zeros_like(right))


def test_useless_words_have_a_small_weight() -> None:
    found, right = near()
    silent = NearestPassages(
        found.indices, found.distances, np.random.default_rng(4).random(right.shape)
    )
    assert fit_word_weight(silent, right) < 0.1 * fit_word_weight(found, right)


def test_reading_one_passage_takes_the_nearest() -> None:
    candidates = found()
    share = 100 * candidates.is_right[:, 0].mean()
    assert exact_match_by_passages(candidates, ScoreWeights(1, 0, 0), [1]) == [share]


def test_a_sample_follows_from_its_seed_and_takes_at_most_all() -> None:
    asked = [
        TrainingQuestion(
            question=str(n), answer="", answer_start=0, source="ab"[n % 2], positive=0, negatives=()
        )
        for n in range(20)
    ]
    chosen = sample_questions(asked, {"a": 4, "b": 100, "c": 5}, 1)
    assert chosen == sample_questions(asked, {"a": 4, "b": 100, "c": 5}, 1)
    assert [q.source for q in chosen] == ["a"] * 4 + ["b"] * 10


def test_the_best_passages_are_in_the_order_of_hybrid_distance() -> None:
    passages = [Passage("", name) for name in "abc"]
    places = np.array([[2, 0, 1]])
    found = NearestPassages(places, np.array([[0.1, 0.2, 0.3]]), np.array([[0.0, 5.0, 0.0]]))
    (row,) = best_passages(found, passages, word_weight=0.1)
    assert [each.passage.text for each in row] == ["a", "c", "b"]
    assert [each.hybrid_distance for each in row] == pytest.approx([-0.3, 0.1, 0.3])


class Scripted:
    """Reads a passage as its title; relevance is the length of its text, and of its words."""

    def word_shares(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return [len(passage.text) / len(question) for passage in passages]

    def read_all(self, work: Sequence[tuple[str, Passage, float]], what: str) -> list[Reading]:
        return [
            Reading(
                passage=Stored("", "", p.title),
                start=0,
                end=len(p.title),
                score=0,
                relevance=len(p.text),
                span_score=1 if p.title else -np.inf,
                distance=distance,
                hybrid_distance=0,
                words=0,
            )
            for _, p, distance in work
        ]


def test_candidates_are_read_in_the_order_in_which_they_were_retrieved() -> None:
    asked = [
        JudgedQuestion(text="who", answers=("Ada",)),
        JudgedQuestion(text="who", answers=("Al", "Bo")),
    ]
    row = [
        RankedPassage(Passage("Ada", "x"), 0.5, 0.2, 7.0),
        RankedPassage(Passage("Bo", "xxx"), 0.4, 0.3, 6.0),
    ]
    read = read_candidates(asked, [row, row], Scripted())  # type: ignore[arg-type]
    assert read.is_right.tolist() == [[True, False], [False, True]]
    assert read.features[0].tolist() == [[1, 1, 0.5, 7], [3, 1, 0.4, 6]]
    assert read.hybrid_distances.tolist() == [[0.2, 0.3]] * 2
    assert read.word_shares.tolist() == [[1 / 3, 1]] * 2
    assert read.has_answer.tolist() == read.is_right.tolist()  # both titles are answers


def test_a_passage_without_a_span_is_not_right() -> None:
    """Not even if an accepted answer has only articles."""
    asked = [JudgedQuestion(text="who", answers=("the", "Ada"))]
    row = [RankedPassage(Passage("", "Ada"), 0.5, 0.2), RankedPassage(Passage("Ada", ""), 0.5, 0.3)]
    read = read_candidates(asked, [row], Scripted())  # type: ignore[arg-type]
    assert read.is_right.tolist() == [[False, True]]
    assert read.is_right_sentence.tolist() == [[False, True]]
    assert read.has_answer.tolist() == [[True, True]]


def test_passages_from_which_nothing_can_be_fitted_are_refused_with_the_kind_of_text() -> None:
    asked = [JudgedQuestion(text="who", answers=("Ada",)), JudgedQuestion(text="who", answers=())]
    right = RankedPassage(Passage("", "Ada did."), 0.5, 0.2)
    wrong = RankedPassage(Passage("", "Bo did."), 0.5, 0.2)
    check_retrieved("manuals", asked, [[wrong, right], [wrong, wrong]], 2)
    with pytest.raises(DataError, match="manuals: a question has 1 retrieved passage, and 2 are"):
        check_retrieved("manuals", asked, [[wrong, right], [wrong]], 2)
    for none in ([], asked[1:]):
        with pytest.raises(DataError, match=f"manuals: no .* any of {len(none)} question"):
            check_retrieved("manuals", none, [[wrong, right]] * len(none), 2)


def late_candidates(questions: int = 200, candidates: int = 8, seed: int = 1) -> LateCandidates:
    """Late interaction knows what is right, words a little, and distances nothing."""
    generator = np.random.default_rng(seed)
    right = np.zeros((questions, candidates), np.bool_)
    right[:, 0] = True
    distances, words, tokens = generator.normal(size=(3, questions, candidates))
    distances[:, -1], right[0] = np.inf, False
    return LateCandidates(
        passages=[[Passage("", str(number)) for number in range(candidates)]] * questions,
        distances=distances,
        words=words + right,
        tokens=tokens + 3 * right,
        is_right=right,
    )


def test_the_ranking_weighs_what_finds_the_right_passage() -> None:
    candidates = late_candidates()
    fitted = fit_late_weights([candidates])
    assert fitted.tokens > fitted.words > 0
    answered = np.arange(200) > 0
    (before,) = candidates.recall_by_passages(LateWeights(0.0, 0.0), [1], answered)
    (after,) = candidates.recall_by_passages(fitted, [1], answered)
    assert after > 90
    assert before < 50


def test_the_weights_of_the_ranking_are_bounded_if_distance_is_useless() -> None:
    """Words and late interaction keep their ratio."""
    candidates = late_candidates()
    same = np.where(np.isfinite(candidates.distances), 0.0, np.inf)
    fitted = fit_late_weights([replace(candidates, distances=same)])
    assert fitted.words <= MAX_WORD_WEIGHT
    assert fitted.tokens <= MAX_TOKEN_WEIGHT
    assert fitted.tokens / fitted.words == pytest.approx(3.4, abs=0.3)


def test_the_ranking_counts_each_question_equally() -> None:
    """How they are divided into kinds of text changes nothing."""
    candidates = late_candidates()

    def part(questions: slice) -> LateCandidates:
        return LateCandidates(
            passages=candidates.passages[questions],
            distances=candidates.distances[questions],
            words=candidates.words[questions],
            tokens=candidates.tokens[questions],
            is_right=candidates.is_right[questions],
        )

    together = fit_late_weights([candidates])
    divided = fit_late_weights([part(slice(170)), part(slice(170, None))])
    assert divided.words == pytest.approx(together.words, abs=2e-4)
    assert divided.tokens == pytest.approx(together.tokens, abs=2e-4)


def test_confidences_of_an_earlier_fit_are_kept() -> None:
    fit = ReadingFit(
        score=ScoreWeights(1.0, 2.0, -3.0, hybrid=-4.0),
        confidence=Confidence(1.0, 1.0, -1.0, 0.5),
        sentence_confidence=Confidence(2.0, 2.0, -2.0, 0.5),
        min_confidence=0.2,
        stopping=[],
    )
    earlier = {"min_confidence": 0.1, "confidence": {"bias": 7}, "sentence_confidence": {"bias": 8}}
    kept = fit.score_entry({**earlier, "relevance": 9.0})
    assert kept == {**fit.score_entry(), **earlier}
    assert kept["relevance"] == 1.0


def test_padding_is_never_among_the_best() -> None:
    best = late_candidates().best(LateWeights(1.0, 1.0), 7)
    assert {each.passage.text for row in best for each in row} == set("0123456")
    assert all(row == sorted(row, key=lambda passage: passage.hybrid_distance) for row in best)
    with pytest.raises(DataError, match="fewer than 8 candidates"):
        late_candidates().best(LateWeights(1.0, 1.0), 8)


def test_the_hybrid_distance_is_a_part_of_the_score_of_late_interaction() -> None:
    row = [RankedPassage(Passage("Ada", "x"), 0.5, -2.0, 7.0)]
    asked = [JudgedQuestion(text="who", answers=("Ada",))]
    read = read_candidates(asked, [row], Scripted(), late_interaction=True)  # type: ignore[arg-type]
    assert read.features.tolist() == [[[1, 1, 0.5, 7, -2.0]]]
    weights = ScoreWeights(1.0, 1.0, -1.0, words=0.5, hybrid=-3.0)
    assert scores_of(read.features, weights).tolist() == [[1 + 1 - 0.5 + 3.5 + 6]]
