"""Fits temperature and threshold of a head on held-out logits of the served graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.heads.entities import label_pieces
from models.heads.task import HeadTask
from winnow.heads.head import Head
from winnow.heads.labels import Logits, softmax
from winnow.heads.manifest import Kind

_TEMPERATURES = np.geomspace(0.1, 10.0, 185)
_MIN_PROBABILITY = 1e-9
MAX_LOST_CORRECT = 1.5
"""Labelled texts whose correct label the threshold may reject, in percentage points."""
_REJECTED = 0.01
"""Share of labelled texts below the threshold if there are no out-of-scope texts."""


def fit_temperature(logits: Logits, labels: Sequence[int]) -> float:
    """Returns the temperature that makes the labels most probable (Guo et al., 2017).

    Smooths the labels as if one more text had every label (compare Platt, 1999). Without smoothing,
    a few texts without a mistake would raise every probability, and the threshold, to 1.

    Args:
        logits: [texts or tokens, labels].
        labels: index of the correct label of each row.

    """
    rows = np.arange(len(labels))
    smoothing = _smoothing(len(labels))

    def loss(temperature: float) -> float:
        logs = np.log(softmax(logits, temperature).clip(_MIN_PROBABILITY))
        correct = logs[rows, list(labels)]
        return float(-((1 - smoothing) * correct + smoothing * logs.mean(1)).mean())

    return float(min(_TEMPERATURES, key=loss)) if len(labels) else 1.0


def fit_multi_temperature(logits: Logits, targets: NDArray[np.bool_]) -> float:
    """Returns the temperature of independent labels. Both arguments are [texts, labels]."""
    smoothing = _smoothing(len(targets))

    def loss(temperature: float) -> float:
        signed = np.where(targets, logits, -logits).astype(np.float64) / temperature
        return float((np.logaddexp(0, -signed) + smoothing / 2 * signed).mean())

    return float(min(_TEMPERATURES, key=loss)) if len(targets) else 1.0


def _smoothing(texts: int) -> float:
    """Returns the share of label smoothing, which is the weight of one more text."""
    return 1 / (texts + 2)


def fit_threshold(
    best: NDArray[np.float64], is_correct: NDArray[np.bool_], out_of_scope: Logits
) -> float:
    """Returns the lowest probability at which a label is assigned.

    Maximises the share of labelled texts above the threshold plus the share of out-of-scope texts
    below it. At most `MAX_LOST_CORRECT` points of the correct labels are lost. Without out-of-scope
    texts, the threshold is a probability that nearly all texts reach.

    Args:
        best: highest probability of each labelled text.
        is_correct: whether the label with this probability is correct.
        out_of_scope: highest probability of each out-of-scope text.

    """
    if not len(out_of_scope):
        return float(np.quantile(best, _REJECTED))
    thresholds = np.unique(np.concatenate([[0.0], best, out_of_scope]))
    accepted = np.array([(best[is_correct] >= each).sum() for each in thresholds])
    accepted = accepted / max(len(best), 1)
    rejected = np.array([(out_of_scope < each).mean() for each in thresholds])
    allowed = accepted >= accepted[0] - MAX_LOST_CORRECT / 100
    total = np.where(allowed, accepted + rejected, -1.0)
    return float(thresholds[int(total.argmax())])


def fit_label_threshold(scores: NDArray[np.float64], targets: NDArray[np.bool_]) -> float:
    """Returns the probability threshold with the best F1 of all labels together.

    Of equally good thresholds, returns the threshold nearest to 0.5, because the lowest would
    assign improbable labels.
    """

    def f1(threshold: float) -> float:
        predicted = scores >= threshold
        return float(2 * (predicted & targets).sum() / max(predicted.sum() + targets.sum(), 1))

    thresholds = np.linspace(0.05, 0.95, 91)
    return float(max(thresholds, key=lambda each: (f1(each), -abs(each - 0.5))))


def calibrate_head(head: Head, task: HeadTask) -> dict[str, Any]:
    """Returns the manifest fields `temperature` and, for sequence heads, `threshold`."""
    texts = task.held_out.encoded
    logits = [head.logits(texts.states_of(index).astype(np.float32)) for index in range(len(texts))]
    if task.kind is Kind.TOKEN:
        return _calibrate_tokens(logits, task)
    if task.multi_label:
        return _calibrate_multi_label(np.stack(logits), task)
    return _calibrate_single_label(np.stack(logits), task)


def _calibrate_tokens(logits: list[Logits], task: HeadTask) -> dict[str, Any]:
    indices = {label: index for index, label in enumerate(task.labels)}
    labels: list[int] = []
    for text, row in enumerate(task.held_out.rows):
        pieces = task.held_out.encoded.pieces(text)
        labels += [indices.get(label, -1) for label in label_pieces(pieces, row.words, row.labels)]
    rows = np.concatenate([each[1:-1] for each in logits])  # without [CLS] and [SEP]
    targets = np.array(labels, int)
    is_known = targets >= 0  # the training texts lack the other labels
    return {"temperature": fit_temperature(rows[is_known], targets[is_known].tolist())}


def _calibrate_multi_label(logits: Logits, task: HeadTask) -> dict[str, Any]:
    targets: NDArray[np.bool_] = np.array(
        [[label in row.labels for label in task.labels] for row in task.held_out.rows]
    )
    temperature = fit_multi_temperature(logits, targets)
    scores = 1 / (1 + np.exp(-logits.astype(np.float64) / temperature))
    return {"temperature": temperature, "threshold": fit_label_threshold(scores, targets)}


def _calibrate_single_label(logits: Logits, task: HeadTask) -> dict[str, Any]:
    indices = {label: index for index, label in enumerate(task.labels)}
    targets = np.array([indices.get(row.labels[0], -1) for row in task.held_out.rows])
    is_known = targets >= 0
    temperature = fit_temperature(logits[is_known], targets[is_known].tolist())
    probabilities = softmax(logits, temperature)
    best, is_correct = probabilities.max(1), probabilities.argmax(1) == targets
    # a label that the training texts lack is wrong, not out of scope
    outside = np.array([task.out_of_scope in row.labels for row in task.held_out.rows])
    threshold = fit_threshold(best[~outside], is_correct[~outside], best[outside])
    return {"temperature": temperature, "threshold": threshold}
