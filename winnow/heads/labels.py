"""Converts the logits of a text to labels with scores. Pure.

Training data may have a label "oos" or "out_of_scope" for texts of no class (Larson et al., 2019).
Such a label is treated like any other. A prediction's `out_of_scope` is independent of it: it tells
whether even the best label is improbable.
"""

import numpy as np
from numpy.typing import NDArray

from winnow.domain.prediction import LabelScore, SequencePrediction
from winnow.heads.manifest import HeadManifest

MAX_RETURNED_LABELS = 10
"""Maximum number of returned labels, unless more labels are assigned."""
_DEFAULT_THRESHOLD = 0.5
"""Threshold of a multi-label head whose manifest has none."""

Logits = NDArray[np.float32]


def decode_labels(logits: Logits, head: HeadManifest) -> SequencePrediction:
    """Returns the best labels, best first. Ties keep the order of the manifest.

    The best label is assigned if it reaches the threshold, or if there is no threshold. With
    `multi_label`, every label that reaches the threshold (by default 0.5) is assigned.

    Args:
        logits: [labels], finite.
        head: the manifest.

    """
    if head.multi_label:
        scores = _sigmoid(logits, head)
        threshold = _DEFAULT_THRESHOLD if head.threshold is None else head.threshold
        assigned = int(np.count_nonzero(scores >= threshold))
    else:
        scores = softmax(logits, head.temperature)
        assigned = int(scores.max() >= (head.threshold or 0.0))
    best = (-scores).argsort(kind="stable")[: max(MAX_RETURNED_LABELS, assigned)]
    ranked = zip(best.tolist(), to_wire_precision(scores[best]), strict=True)
    labels = tuple(
        LabelScore(head.labels[index], score, rank < assigned)
        for rank, (index, score) in enumerate(ranked)
    )
    return SequencePrediction(labels, None if head.threshold is None else not assigned)


def softmax(logits: Logits, temperature: float) -> NDArray[np.float64]:
    """Computes probabilities over the last axis, with a temperature (Guo et al., 2017).

    The probabilities are finite for all finite logits.
    """
    wide = logits.astype(np.float64)
    # no overflow: float32 differences fit float64, and every exponent is at most 0
    powers = np.exp((wide - wide.max(axis=-1, keepdims=True)) / temperature)
    probabilities: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


def to_wire_precision(scores: NDArray[np.float64]) -> list[float]:
    """Rounds scores to float32, as messages carry them, so that local and remote scores agree."""
    rounded: list[float] = scores.astype(np.float32).tolist()
    return rounded


def _sigmoid(logits: Logits, head: HeadManifest) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        probabilities: NDArray[np.float64] = 1 / (
            1 + np.exp(-logits.astype(np.float64) / head.temperature)
        )
    return probabilities
