"""Fits the weights of the final score on held-out questions, of one or several kinds of text.

For each question, reads the retrieved passages with the smallest hybrid distances. The weights
maximise the softmax probability of passages with a right span, which is the chance that the merged
answer is right. Each kind of text counts equally, however many questions it has.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.assemble import ScoreWeights
from models.data import DataError, Passage
from models.measuring.fitting import fit_signed_weights, ranking_loss
from models.measuring.judging import JudgedQuestion
from models.measuring.reading import OfflineReader
from models.measuring.retrieving import NearestPassages
from models.mining.mine import TrainingQuestion
from winnow.domain.reading import Reading
from winnow.quoting import many
from winnow.text.surroundings import sentence_around

PASSAGES = 20
"""Number of passages to read for each question."""
_RIDGE = 1e-3
_MIN_SPREAD = 1e-6
_SPAN = 1
"""Number of the span's score among the features."""
SIGNS = (1.0, 1.0, -1.0, 1.0, -1.0)
"""Signs of the weights of relevance, span, distance, words and hybrid distance.

The fixed signs ensure that a higher relevance, a higher span score, a smaller distance and more
words of the question never lower the score.
"""
_ACCEPTED = 0.95
"""Share of right answers above the threshold of `has_answer`."""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A retrieved passage with its distances to the question."""

    passage: Passage
    distance: float
    """Squared distance of the vectors."""
    hybrid_distance: float
    """`distance` minus the weight of the words that match the question."""
    words: float = 0.0
    """BM25 score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Reader outputs for the retrieved passages of each question, by rising hybrid distance."""

    features: NDArray[np.float64]
    """Relevance, span, distance and words, [questions, passages, 4].

    With late interaction also the hybrid distance, [questions, passages, 5].
    """
    hybrid_distances: NDArray[np.float64]
    """Hybrid distances of the passages, [questions, passages]."""
    word_shares: NDArray[np.float64]
    """The question's words in the passages, with rarities that need no index, as
    `QuestionWords.share` returns them, [questions, passages].
    """
    is_right: NDArray[np.bool_]
    """Whether the best span is a right answer, [questions, passages]."""
    has_answer: NDArray[np.bool_]
    """Whether the passage contains a right answer anywhere, [questions, passages]."""
    is_right_sentence: NDArray[np.bool_]
    """Whether the sentence of the best span contains a right answer, [questions, passages]."""
    is_answerable: NDArray[np.bool_]
    """Whether the question has an answer, [questions]."""

    @property
    def has_span(self) -> NDArray[np.bool_]:
        """Whether the reader found a span, [questions, passages].

        It finds none in a passage without tokens.
        """
        return _has_span(self.features)

    def first(self, count: int) -> "Candidates":
        """Returns the first `count` passages of each question."""
        return Candidates(
            **{
                name: values if values.ndim == 1 else np.ascontiguousarray(values[:, :count])
                for name, values in self.arrays().items()
            }
        )

    def answerable(self) -> "Candidates":
        """Returns the candidates of the questions whose answer was retrieved."""
        chosen = self.has_answer.any(1)
        return Candidates(**{name: values[chosen] for name, values in self.arrays().items()})

    def arrays(self) -> dict[str, Any]:
        """Returns the arrays by the names of their fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def join(kinds: Sequence[Candidates]) -> Candidates:
    """Returns the candidates of all questions. All kinds need equally many passages."""
    names = kinds[0].arrays()
    return Candidates(
        **{name: np.concatenate([each.arrays()[name] for each in kinds]) for name in names}
    )


def sample_questions(
    questions: Sequence[TrainingQuestion], max_by_source: dict[str, int], seed: int
) -> list[TrainingQuestion]:
    """Draws at most `max_by_source[source]` questions of each source."""
    generator = random.Random(seed)
    drawn: list[TrainingQuestion] = []
    for source, count in sorted(max_by_source.items()):
        of_source = [question for question in questions if question.source == source]
        drawn += generator.sample(of_source, min(count, len(of_source)))
    return drawn


def best_passages(
    nearest: NearestPassages, passages: Sequence[Passage], word_weight: float
) -> list[list[RankedPassage]]:
    """Returns the `PASSAGES` passages with the smallest hybrid distance to every question."""
    hybrid_distances = nearest.hybrid_distances(word_weight)
    order = hybrid_distances.argsort(1, kind="stable")[:, :PASSAGES]
    columns = [
        np.take_along_axis(each, order, 1).tolist()
        for each in (nearest.indices, nearest.distances, hybrid_distances, nearest.matches)
    ]
    return [
        [RankedPassage(passages[index], *scores) for index, *scores in zip(*rows, strict=True)]
        for rows in zip(*columns, strict=True)
    ]


def read_candidates(
    questions: Sequence[JudgedQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    reader: OfflineReader,
    *,
    late_interaction: bool = False,
) -> Candidates:
    """Reads the retrieved passages of every question. All questions need equally many passages.

    `late_interaction`: whether they were ranked by it, so that the hybrid distance is a feature.
    """
    pairs = [
        (question, ranked)
        for question, row in zip(questions, retrieved, strict=True)
        for ranked in row
    ]
    readings = reader.read_all(
        [(question.text, ranked.passage, ranked.distance) for question, ranked in pairs],
        "read candidates",
    )
    judged = [
        (
            question.accepts_span(reading.answer),
            question.accepts_passage(ranked.passage),
            question.accepts_sentence(_answer_sentence(reading)),
        )
        for reading, (question, ranked) in zip(readings, pairs, strict=True)
    ]
    features = np.array(
        [
            (
                *(reading.relevance, reading.span_score, ranked.distance, ranked.words),
                *([ranked.hybrid_distance] if late_interaction else []),
            )
            for reading, (_, ranked) in zip(readings, pairs, strict=True)
        ]
    )
    hybrid = np.array([[ranked.hybrid_distance for ranked in row] for row in retrieved])
    features = features.reshape(*hybrid.shape, -1)
    has_span = _has_span(features)
    right, has_answer, right_sentence = np.array(judged).T.reshape(3, *hybrid.shape)
    return Candidates(
        features=features,
        hybrid_distances=hybrid,
        word_shares=_word_shares(questions, retrieved, reader),
        is_right=right & has_span,
        has_answer=has_answer,
        is_right_sentence=(right | right_sentence) & has_span,
        is_answerable=np.array([bool(question.answers) for question in questions]),
    )


def _word_shares(
    questions: Sequence[JudgedQuestion],
    retrieved: Sequence[Sequence[RankedPassage]],
    reader: OfflineReader,
) -> NDArray[np.float64]:
    shares = [
        reader.word_shares(question.text, [ranked.passage for ranked in row])
        for question, row in zip(questions, retrieved, strict=True)
    ]
    return np.array(shares)


def _answer_sentence(reading: Reading) -> str:
    text = reading.passage.text
    return text[slice(*sentence_around(text, reading.start, reading.end))]


def scores_of(features: NDArray[np.float64], score: ScoreWeights) -> NDArray[np.float64]:
    """Returns the scores of `Candidates.features`, [questions, passages].

    Without a span, the score is minus infinity.
    """
    weights = [score.relevance, score.span, score.distance, score.words, score.hybrid]
    return _weighted(features, np.array(weights)[: features.shape[-1]])


def _weighted(features: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):  # a weight of 0 times minus infinity
        return np.where(_has_span(features), features @ weights, -np.inf)


def _has_span(features: NDArray[np.float64]) -> NDArray[np.bool_]:
    has_span: NDArray[np.bool_] = features[..., _SPAN] != -np.inf
    return has_span


def fit_score(kinds: Sequence[Candidates]) -> ScoreWeights:
    """Returns the weights, and a threshold that accepts most right answers of every kind.

    Args:
        kinds: candidates of each kind of text.

    Raises:
        DataError: no question of a kind was answered correctly.

    """
    weights = _fit_weights(kinds)
    thresholds = [_threshold(candidates, weights) for candidates in kinds]
    relevance, span, distance, words, *hybrid = weights.tolist()
    return ScoreWeights(relevance, span, distance, min(thresholds), words=words, hybrid=sum(hybrid))


def exact_match_by_passages(
    candidates: Candidates, score: ScoreWeights, counts: Sequence[int]
) -> list[float]:
    """Returns exact match in percent after reading each number of passages in `counts`."""
    scores = scores_of(candidates.features, score)
    rows = np.arange(len(scores))
    return [
        100 * float(candidates.is_right[rows, scores[:, :count].argmax(1)].mean())
        for count in counts
    ]


def _threshold(candidates: Candidates, weights: NDArray[np.float64]) -> float:
    """Returns the score that `_ACCEPTED` of the right answers reach."""
    scores = _weighted(candidates.features, weights)
    best = scores.argmax(1)
    rows = np.arange(len(best))
    right_scores = scores[rows, best][candidates.is_right[rows, best]]
    return float(np.quantile(right_scores, 1 - _ACCEPTED)) if len(right_scores) else 0.0


def _fit_weights(kinds: Sequence[Candidates]) -> NDArray[np.float64]:
    """Returns the weights that maximise the probability of right passages."""
    examples = []
    for candidates in kinds:
        is_answered: NDArray[np.bool_] = np.any(candidates.is_right, axis=1)
        if not is_answered.any():
            raise DataError(
                f"no correct answer to any of {many(len(is_answered), 'training question')}: "
                "train the reader longer before calibrating"
            )
        has_span = candidates.has_span[is_answered]
        features = np.where(has_span[..., None], candidates.features[is_answered], 0)
        is_right = candidates.is_right[is_answered]
        examples.append(tuple(map(torch.tensor, (features, has_span, is_right))))
    every = torch.cat([features[has_span] for features, has_span, _ in examples])
    spread = every.std(0).clamp(min=_MIN_SPREAD)

    def loss(weights: Tensor) -> Tensor:
        losses = [
            ranking_loss((features / spread @ weights).masked_fill(~has_span, -torch.inf), is_right)
            for features, has_span, is_right in examples
        ]
        return torch.stack(losses).mean() + _RIDGE * (weights**2).sum()

    signs = torch.tensor(SIGNS[: every.shape[1]], dtype=every.dtype)
    fitted = fit_signed_weights(0.25 * signs, loss)
    weights: NDArray[np.float64] = (fitted / spread).numpy()
    return weights
