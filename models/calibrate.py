"""Fitting the weights of the final score on questions that the reader has not learned from.

A reader is surer of questions it has seen, and a score fitted on those would trust it too much
over many passages. For each question the retriever's best passages are read. The weights maximise
the probability that the softmax of the scores gives to passages whose span is right: the chance
that the merged answer is right. Pure tensors but for the reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.answers import contains_answer
from models.assemble import Score
from models.data import DataError, Passage, Question
from models.embedding import Embedder
from models.mining import nearest
from models.reading import OfflineReader
from winnow.evaluation.scores import exact_match

PASSAGES = 20
_RIDGE = 1e-3
_LEAST_SPREAD = 1e-6
_KEPT = 0.95
"""Share of right answers that stay above the threshold of `has_answer`."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features [questions, passages, 3] (relevance, span, squared distance), and which passages'
    spans are right [questions, passages].
    """

    features: NDArray[np.float64]
    right: NDArray[np.bool_]


def candidates(
    questions: Sequence[Question],
    most: int,
    passages: Sequence[Passage],
    embedder: Embedder,
    reader: OfflineReader,
) -> Candidates:
    """Retrieves and reads `PASSAGES` passages for the first `most` questions that any of them can
    answer.

    Raises:
        DataError: there is no question to fit on.

    """
    if not questions:
        raise DataError("no question is left to fit the score on: mining has used them all")
    vectors = embedder.passages(passages)
    asked = embedder.questions([question.text for question in questions])
    able: list[Question] = []
    work: list[tuple[str, Passage, float]] = []
    for number, near in enumerate(nearest(asked, vectors, PASSAGES)):
        question, found = questions[number], [passages[place] for place in near]
        if not any(contains_answer(passage, question.answers) for passage in found):
            continue
        distances = ((asked[number] - vectors[near]) ** 2).sum(1).tolist()
        able.append(question)
        work += [(question.text, p, d) for p, d in zip(found, distances, strict=True)]
        if len(able) == most:
            break
    readings = reader.read_all(work, "read candidates")
    features = np.array([(r.relevance, r.span_score, r.distance) for r in readings])
    accepted = [question.answers for question in able for _ in range(PASSAGES)]
    right = [exact_match(r.text, a) for r, a in zip(readings, accepted, strict=True)]
    shape = (len(able), PASSAGES)
    return Candidates(features.reshape(*shape, 3), np.array(right).reshape(shape))


def fit(found: Candidates) -> Score:
    """The weights, and the threshold that keeps most right answers.

    Raises:
        DataError: no question was answered right, so there is nothing to fit.

    """
    able = found.right.any(1)
    if not able.any():
        raise DataError(
            f"none of {len(found.right)} training questions was answered right: "
            "train the reader longer before calibrating"
        )
    features = torch.tensor(found.features[able])
    right = torch.tensor(found.right[able])
    spread = features.flatten(0, 1).std(0).clamp(min=_LEAST_SPREAD)
    weights = (_maximise(features / spread, right) / spread).tolist()
    scores = found.features @ np.array(weights)
    best = scores.argmax(1)
    rows = np.arange(len(best))
    right_scores = scores[rows, best][found.right[rows, best]]
    threshold = float(np.quantile(right_scores, 1 - _KEPT)) if len(right_scores) else 0.0
    return Score(weights[0], weights[1], weights[2], threshold)


def exact_match_by_passages(found: Candidates, score: Score, steps: Sequence[int]) -> list[float]:
    """Percent exact match after reading so many passages, under `score`."""
    weights = np.array([score.relevance, score.span, score.distance])
    scores = found.features @ weights
    rows = np.arange(len(scores))
    return [100 * float(found.right[rows, scores[:, :step].argmax(1)].mean()) for step in steps]


def _maximise(features: Tensor, right: Tensor) -> Tensor:
    weights = torch.zeros(features.shape[-1], dtype=features.dtype, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = _loss(features @ weights, right) + _RIDGE * (weights**2).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return weights.detach()


def _loss(scores: Tensor, right: Tensor) -> Tensor:
    """Mean negative log probability of the right passages."""
    chosen = scores.masked_fill(~right, float("-inf")).logsumexp(1)
    return (scores.logsumexp(1) - chosen).mean()
