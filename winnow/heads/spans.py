"""Logits of tokens to spans with labels. Pure.

The best sequence of labels that keeps the rules of BIO (Ramshaw and Marcus, 1995) is found by
dynamic programming (Viterbi, 1967): a span begins with B, and only then goes on with I of the same
label. Spans are of tokens: who knows the text grows them to whole words.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.domain.prediction import TokenPrediction, TokenSpan
from winnow.heads.labels import Logits, as_sent, softmax
from winnow.heads.manifest import BEGIN, INSIDE, HeadManifest

_NEVER = -1
"""The place before a label that may follow every label."""


def decode_spans(logits: Logits, head: HeadManifest) -> TokenPrediction:
    """The spans of a text. The score of one is the mean probability of its tokens' labels.

    Args:
        logits: [tokens + 2, labels], finite; the first and the last row are of [CLS] and [SEP],
            and count for nothing.
        head: the manifest.

    """
    inner = logits[1:-1]
    if not len(inner):
        return TokenPrediction(())
    path = best_path(inner, head.labels)
    found = softmax(inner, head.temperature)[np.arange(len(path)), path]
    spans = list(_spans([head.labels[place] for place in path]))
    scores = as_sent(np.array([found[first:last].mean() for _, first, last in spans]))
    return TokenPrediction(
        tuple(
            TokenSpan(label, first, last, score)
            for (label, first, last), score in zip(spans, scores, strict=True)
        )
    )


def best_path(logits: Logits, labels: Sequence[str]) -> list[int]:
    """The allowed sequence of labels with the greatest sum of logits, as places in `labels`.

    Dividing all logits by one temperature, or making probabilities of each row, changes no order
    of sums; so this needs neither.
    """
    begins = _begins(labels)
    inside = np.flatnonzero(begins != _NEVER)
    begin_of = begins[inside]
    wide = logits.astype(np.float64)
    score = wide[0].copy()
    score[inside] = -np.inf  # nothing goes on that has not begun
    came_from = np.zeros(wide.shape, dtype=np.intp)
    for token in range(1, len(wide)):
        came = np.full(len(labels), int(score.argmax()), dtype=np.intp)
        came[inside] = np.where(score[begin_of] >= score[inside], begin_of, inside)
        score = score[came] + wide[token]
        came_from[token] = came
    path = [int(score.argmax())]
    for token in range(len(wide) - 1, 0, -1):
        path.append(int(came_from[token, path[-1]]))
    return path[::-1]


def _begins(labels: Sequence[str]) -> NDArray[np.intp]:
    """For each I- label the place of its B- label; for the others `_NEVER`."""
    places = {label: place for place, label in enumerate(labels)}
    return np.array(
        [
            places[BEGIN + label.removeprefix(INSIDE)] if label.startswith(INSIDE) else _NEVER
            for label in labels
        ],
        dtype=np.intp,
    )


def _spans(labels: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """The label, first token and one past the last of each span in an allowed sequence."""
    begin: int | None = None
    for token, label in enumerate([*labels, ""]):
        if begin is not None and not label.startswith(INSIDE):
            yield labels[begin].removeprefix(BEGIN), begin, token
            begin = None
        if label.startswith(BEGIN):
            begin = token
