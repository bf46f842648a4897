"""Logits of a text to labels with scores. Pure.

A label may be called "oos" or "out_of_scope", where the training data has texts of no class at all
(Larson et al., 2019): it is a label like the others, beside which `out_of_scope` says whether even
the best label is improbable.
"""

import numpy as np
from numpy.typing import NDArray

from winnow.domain.prediction import LabelScore, SequencePrediction
from winnow.heads.manifest import HeadManifest

MOST = 10
"""Labels that are returned, the best ones; more only where more are assigned."""
_EVEN = 0.5
"""The threshold of a head with several labels a text that names none."""

Logits = NDArray[np.float32]


def decode_labels(logits: Logits, head: HeadManifest) -> SequencePrediction:
    """The best labels, best first; equally good ones in the order of the manifest.

    The best label is assigned if it reaches the threshold, or if there is none. Where a text may
    have several labels, each one that reaches the threshold is, or 0.5.

    Args:
        logits: [labels], finite.
        head: the manifest.

    """
    if head.multi_label:
        scores = _sigmoid(logits, head)
        least = _EVEN if head.threshold is None else head.threshold
        given = int(np.count_nonzero(scores >= least))
    else:
        scores = softmax(logits, head.temperature)
        given = int(scores.max() >= (head.threshold or 0.0))
    best = (-scores).argsort(kind="stable")[: max(MOST, given)]
    names = head.labels
    labels = tuple(
        [
            LabelScore(names[place], score, rank < given)
            for rank, (place, score) in enumerate(
                zip(best.tolist(), as_sent(scores[best]), strict=True)
            )
        ]
    )
    return SequencePrediction(labels, None if head.threshold is None else not given)


def softmax(logits: Logits, temperature: float) -> NDArray[np.float64]:
    """Probabilities over the last axis (Guo et al., 2017); finite for all finite logits."""
    wide = logits.astype(np.float64)
    # differences of float32 are far from the largest float64, and what is divided is not positive
    powers = np.exp((wide - wide.max(axis=-1, keepdims=True)) / temperature)
    shares: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def as_sent(scores: NDArray[np.float64]) -> list[float]:
    """Scores as messages carry them, so that they are the same near and far."""
    sent: list[float] = scores.astype(np.float32).tolist()
    return sent


def _sigmoid(logits: Logits, head: HeadManifest) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        probabilities: NDArray[np.float64] = 1 / (
            1 + np.exp(-logits.astype(np.float64) / head.temperature)
        )
    return probabilities
