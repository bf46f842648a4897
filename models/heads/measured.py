"""Accuracy of a head, run as a server runs it: the same graph, decoding and growing of words."""

from collections.abc import Iterable, Sequence

import numpy as np

from models.data import DataError
from models.heads.entities import (
    Entity,
    Spans,
    accuracy,
    entity_scores,
    in_words,
    label_scores,
    right_entities,
)
from models.heads.problem import Part, Problem
from winnow.domain.prediction import Prediction, SequencePrediction, TokenPrediction
from winnow.heads.head import Head
from winnow.heads.manifest import HeadManifest, Kind

MAIN = {Kind.SEQUENCE: ("in_scope_accuracy", "label_f1", "accuracy"), Kind.TOKEN: ("entity_f1",)}
"""The figure that heads of a kind are compared by: the first of these that they have."""
HELD_OUT = "held_out_"
"""Prefix of a figure that was measured on held-out texts."""


def main_figure(kind: Kind, figures: dict[str, float]) -> float:
    """Returns the figure by which two heads are compared, in percent."""
    return next(figures[name] for name in MAIN[kind] if name in figures)


def comparable(before: HeadManifest, after: HeadManifest) -> tuple[str, float, float]:
    """Returns the figure by which two versions of a head are compared, and what each has of it.

    Raises:
        DataError: they have none in common.

    """
    for prefix in ("", HELD_OUT):
        for name in MAIN[before.kind]:
            if (full := prefix + name) in before.accuracy and full in after.accuracy:
                return full, before.accuracy[full], after.accuracy[full]
    raise DataError(
        f"the manifest of head {before.id} has no accuracy to compare: "
        "retrain it with explicit options"
    )


def measure(head: Head, problem: Problem, part: Part) -> dict[str, float]:
    """Returns figures of a part, by name, in percent with two decimals."""
    predicted = predictions(head, part)
    if problem.kind is Kind.TOKEN:
        figures = _of_entities(predicted, part)
    elif problem.multi_label:
        figures = _of_labels(predicted, part)
    else:
        figures = _of_texts(predicted, part, problem.out_of_scope)
    return {name: round(value, 2) for name, value in figures.items()}


def predictions(head: Head, part: Part) -> list[Prediction]:
    """Returns the predictions of a head for every text."""
    encoded = part.encoded
    return [head.predict(encoded.of(place).astype(np.float32)) for place in range(len(encoded))]


def _of_texts(predicted: Sequence[Prediction], part: Part, out_of_scope: str) -> dict[str, float]:
    pairs = list(zip(_sequences(predicted), [row.labels[0] for row in part.rows], strict=True))
    inside = [(each, label) for each, label in pairs if label != out_of_scope]
    best = [each.labels[0].label for each, _ in inside]
    right = [label for _, label in inside]
    figures = {"accuracy": accuracy(best, right)}
    figures["refused"] = _share(each.out_of_scope for each, _ in inside)
    if outside := [each for each, label in pairs if label == out_of_scope]:
        assigned = [each.labels[0].label if each.labels[0].assigned else "" for each, _ in inside]
        figures["in_scope_accuracy"] = accuracy(assigned, right)
        figures["out_of_scope_recall"] = _share(each.out_of_scope for each in outside)
    return figures


def _of_labels(predicted: Sequence[Prediction], part: Part) -> dict[str, float]:
    assigned = [{s.label for s in each.labels if s.assigned} for each in _sequences(predicted)]
    return label_scores(assigned, [set(row.labels) for row in part.rows])


def _of_entities(predicted: Sequence[Prediction], part: Part) -> dict[str, float]:
    found = [
        _entities(each, row.text, part.encoded.pieces(place))
        for place, (each, row) in enumerate(zip(predicted, part.rows, strict=True))
    ]
    return entity_scores(found, right_entities(part.rows))


def _entities(predicted: Prediction, text: str, pieces: Spans) -> list[Entity]:
    assert isinstance(predicted, TokenPrediction), "a token head predicts spans"
    spans = [
        (pieces[span.first][0], pieces[span.last - 1][1], span.label, span.score)
        for span in predicted.spans
    ]
    return in_words(text, spans)


def _sequences(predicted: Sequence[Prediction]) -> list[SequencePrediction]:
    return [each for each in predicted if isinstance(each, SequencePrediction)]


def _share(found: Iterable[bool | None]) -> float:
    each = [bool(value) for value in found]
    return 100 * sum(each) / max(len(each), 1)
