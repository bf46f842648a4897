"""Temperature and threshold of a head, fitted on held-out logits of the graph that is served."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.heads.entities import label_pieces
from models.heads.problem import Problem
from winnow.heads.head import Head
from winnow.heads.labels import Logits, softmax
from winnow.heads.manifest import Kind

_TEMPERATURES = np.geomspace(0.1, 10.0, 185)
_LEAST = 1e-9
MOST_LOST = 1.5
"""Most right answers that the threshold loses, in points of the texts that have a label."""
_REJECTED = 0.01
"""Share of texts with a label that fall below the threshold where no text without one is known."""

Labels = Sequence[int]


def fit_temperature(logits: Logits, right: Labels) -> float:
    """Returns the temperature that makes the right labels most probable (Guo et al., 2017).

    As if one more text had been seen, whose label could be any (in the manner of Platt, 1999): a
    few texts without a mistake would make every probability 1, and the threshold with it.

    Args:
        logits: [texts or tokens, labels].
        right: the place of each one's label.

    """
    rows = np.arange(len(right))

    doubt = _doubt(len(right))

    def surprise(temperature: float) -> float:
        logs = np.log(softmax(logits, temperature).clip(_LEAST))
        return float(-((1 - doubt) * logs[rows, list(right)] + doubt * logs.mean(1)).mean())

    return float(min(_TEMPERATURES, key=surprise)) if len(right) else 1.0


def fit_multi_temperature(logits: Logits, right: NDArray[np.bool_]) -> float:
    """Returns the temperature where labels are independent; both are [texts, labels]."""
    doubt = _doubt(len(right))

    def surprise(temperature: float) -> float:
        signed = np.where(right, logits, -logits).astype(np.float64) / temperature
        return float((np.logaddexp(0, -signed) + doubt / 2 * signed).mean())

    return float(min(_TEMPERATURES, key=surprise)) if len(right) else 1.0


def _doubt(texts: int) -> float:
    """Returns the share of each text's label that goes to all labels alike: one text's in all."""
    return 1 / (texts + 2)


def fit_threshold(best: NDArray[np.float64], right: NDArray[np.bool_], without: Logits) -> float:
    """Returns the least probability of a label that is assigned.

    With texts that have no label: where the shares of texts that are treated rightly, with a label
    and without one, are greatest together, as long as no more than `MOST_LOST` points of the right
    labels are lost. Else the probability that nearly all texts reach.

    Args:
        best: the probability of the best label of each text that has one.
        right: whether it is the right label.
        without: the same probabilities of texts without a label.

    """
    if not len(without):
        return float(np.quantile(best, _REJECTED))
    options = np.unique(np.concatenate([[0.0], best, without]))
    kept = np.array([(best[right] >= option).sum() for option in options]) / max(len(best), 1)
    refused = np.array([(without < option).mean() for option in options])
    allowed = kept >= kept[0] - MOST_LOST / 100
    total = np.where(allowed, kept + refused, -1.0)
    return float(options[int(total.argmax())])


def fit_label_threshold(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Returns the probability from which labels are assigned, where F1 of all labels together is
    best.

    Of equally good ones, the nearest to a half: the lowest would assign what is improbable.
    """
    options = np.linspace(0.05, 0.95, 91)

    def f1(option: float) -> float:
        predicted = scores >= option
        return float(2 * (predicted & right).sum() / max(predicted.sum() + right.sum(), 1))

    return float(max(options, key=lambda option: (f1(option), -abs(option - 0.5))))


def calibrate(head: Head, problem: Problem) -> dict[str, Any]:
    """`temperature` and `threshold`, as a manifest has them."""
    encoded = problem.held.encoded
    logits = [head.logits(encoded.of(text).astype(np.float32)) for text in range(len(encoded))]
    if problem.kind is Kind.TOKEN:
        return _of_tokens(logits, problem)
    if problem.multi_label:
        return _of_labels(np.stack(logits), problem)
    return _of_texts(np.stack(logits), problem)


def _of_tokens(logits: list[Logits], problem: Problem) -> dict[str, Any]:
    places = {label: place for place, label in enumerate(problem.labels)}
    right: list[int] = []
    for text, row in enumerate(problem.held.rows):
        pieces = problem.held.encoded.pieces(text)
        right += [places.get(label, -1) for label in label_pieces(pieces, row.words, row.labels)]
    rows = np.concatenate([each[1:-1] for each in logits])  # without [CLS] and [SEP]
    found = np.array(right, int)
    known = found >= 0  # the others have labels that training lacks
    return {"temperature": fit_temperature(rows[known], found[known].tolist())}


def _of_labels(logits: Logits, problem: Problem) -> dict[str, Any]:
    right: NDArray[np.bool_] = np.array(
        [[label in row.labels for label in problem.labels] for row in problem.held.rows]
    )
    temperature = fit_multi_temperature(logits, right)
    scores = 1 / (1 + np.exp(-logits.astype(np.float64) / temperature))
    return {"temperature": temperature, "threshold": fit_label_threshold(scores, right)}


def _of_texts(logits: Logits, problem: Problem) -> dict[str, Any]:
    places = {label: place for place, label in enumerate(problem.labels)}
    found = np.array([places.get(row.labels[0], -1) for row in problem.held.rows])
    known = found >= 0
    temperature = fit_temperature(logits[known], found[known].tolist())
    shares = softmax(logits, temperature)
    best, right = shares.max(1), shares.argmax(1) == found
    # a label that training lacks is wrong, not out of scope
    outside = np.array([problem.out_of_scope in row.labels for row in problem.held.rows])
    return {
        "temperature": temperature,
        "threshold": fit_threshold(best[~outside], right[~outside], best[outside]),
    }
