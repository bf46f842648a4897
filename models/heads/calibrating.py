"""Temperature and threshold of a head, fitted on held-out logits of the graph that is served."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.heads.alignment import label_pieces
from models.heads.calibration import (
    fit_label_threshold,
    fit_multi_temperature,
    fit_temperature,
    fit_threshold,
)
from models.heads.problem import Problem
from winnow.heads.head import Head
from winnow.heads.labels import Logits, softmax
from winnow.heads.manifest import Kind


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
