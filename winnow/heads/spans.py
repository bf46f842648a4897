"""Converts the logits of tokens to labelled spans of tokens. Pure.

Finds the best sequence of BIO labels (Ramshaw and Marcus, 1995) by dynamic programming (Viterbi,
1967). A span begins with a label `B-x` and continues with `I-x`. Callers that have the text extend
spans to whole words.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.domain.prediction import TokenPrediction, TokenSpan
from winnow.heads.labels import Logits, softmax, to_wire_precision
from winnow.heads.manifest import BEGIN, INSIDE, HeadManifest

_NO_BEGIN = -1
"""Marks a label without an I- prefix, which may follow any label."""


def decode_spans(logits: Logits, head: HeadManifest) -> TokenPrediction:
    """Returns the spans of a text. A span's score is the mean probability of its tokens' labels.

    Args:
        logits: [tokens + 2, labels], finite. The first and last row, [CLS] and [SEP], are ignored.
        head: the manifest.

    """
    inner = logits[1:-1]
    if not len(inner):
        return TokenPrediction(())
    path = best_path(inner, head.labels)
    probabilities = softmax(inner, head.temperature)[np.arange(len(path)), path]
    spans = list(_spans([head.labels[index] for index in path]))
    means = np.array([probabilities[first:end].mean() for _, first, end in spans])
    return TokenPrediction(
        tuple(
            TokenSpan(label, first, end, score)
            for (label, first, end), score in zip(spans, to_wire_precision(means), strict=True)
        )
    )


def best_path(logits: Logits, labels: Sequence[str]) -> list[int]:
    """Returns the valid label sequence with the greatest sum of logits, as indices of `labels`.

    Neither a temperature nor a softmax is applied, because neither changes the order of the sums.
    """
    begins = _begin_indices(labels)
    inside = np.flatnonzero(begins != _NO_BEGIN)
    begin_of = begins[inside]
    wide = logits.astype(np.float64)
    score = wide[0].copy()
    score[inside] = -np.inf  # no sequence starts inside a span
    back_pointers = np.zeros(wide.shape, dtype=np.intp)
    for token in range(1, len(wide)):
        previous = np.full(len(labels), int(score.argmax()), dtype=np.intp)
        previous[inside] = np.where(score[begin_of] >= score[inside], begin_of, inside)
        score = score[previous] + wide[token]
        back_pointers[token] = previous
    path = [int(score.argmax())]
    for token in range(len(wide) - 1, 0, -1):
        path.append(int(back_pointers[token, path[-1]]))
    return path[::-1]


def _begin_indices(labels: Sequence[str]) -> NDArray[np.intp]:
    """Returns the index of the B- label of each I- label, and `_NO_BEGIN` for other labels."""
    index_of = {label: index for index, label in enumerate(labels)}
    return np.array(
        [
            index_of[BEGIN + label.removeprefix(INSIDE)] if label.startswith(INSIDE) else _NO_BEGIN
            for label in labels
        ],
        dtype=np.intp,
    )


def _spans(labels: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Yields the label, first token and end token (exclusive) of each span."""
    begin: int | None = None
    for token, label in enumerate([*labels, ""]):
        if begin is not None and not label.startswith(INSIDE):
            yield labels[begin].removeprefix(BEGIN), begin, token
            begin = None
        if label.startswith(BEGIN):
            begin = token
