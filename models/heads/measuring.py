"""Measures the accuracy of a head with the served graph and the server's decoding."""

from collections.abc import Iterable, Sequence

import numpy as np

from models.data import DataError
from models.heads.entities import (
    Entity,
    Spans,
    accuracy,
    entity_scores,
    gold_entities,
    label_scores,
    whole_word_entities,
)
from models.heads.task import HeadTask, LabelledTexts
from winnow.domain.prediction import Prediction, SequencePrediction, TokenPrediction
from winnow.heads.head import Head
from winnow.heads.manifest import HeadManifest, Kind

MAIN_FIGURES = {
    Kind.SEQUENCE: ("in_scope_accuracy", "label_f1", "accuracy"),
    Kind.TOKEN: ("entity_f1",),
}
"""Names of the figures that compare heads, by kind, with the preferred name first."""
HELD_OUT = "held_out_"
"""Prefix of a figure that was measured on held-out texts."""


def main_figure(kind: Kind, figures: dict[str, float]) -> float:
    """Returns the figure by which two heads are compared, in percent."""
    return next(figures[name] for name in MAIN_FIGURES[kind] if name in figures)


def compare_versions(before: HeadManifest, after: HeadManifest) -> tuple[str, float, float]:
    """Compares two versions of a head by the first main figure that both have.

    Returns the figure's name, its value before and its value after, in percent.

    Raises:
        DataError: the versions have no figure in common.

    """
    for prefix in ("", HELD_OUT):
        for name in MAIN_FIGURES[before.kind]:
            if (full := prefix + name) in before.accuracy and full in after.accuracy:
                return full, before.accuracy[full], after.accuracy[full]
    raise DataError(
        f"the manifest of head {before.id} has no accuracy to compare: "
        "retrain it with explicit options"
    )


def measure_head(head: Head, task: HeadTask, texts: LabelledTexts) -> dict[str, float]:
    """Returns the head's figures on `texts`, by name, in percent with two decimals."""
    encoded = texts.encoded
    predicted = [
        head.predict(encoded.states_of(index).astype(np.float32)) for index in range(len(encoded))
    ]
    if task.kind is Kind.TOKEN:
        figures = _entity_figures(predicted, texts)
    elif task.multi_label:
        assigned = [
            {s.label for s in each.labels if s.assigned}
            for each in _sequence_predictions(predicted)
        ]
        figures = label_scores(assigned, [set(row.labels) for row in texts.rows])
    else:
        figures = _single_label_figures(predicted, texts, task.out_of_scope)
    return {name: round(value, 2) for name, value in figures.items()}


def _single_label_figures(
    predicted: Sequence[Prediction], texts: LabelledTexts, out_of_scope: str
) -> dict[str, float]:
    pairs = list(
        zip(_sequence_predictions(predicted), [row.labels[0] for row in texts.rows], strict=True)
    )
    in_scope = [(each, label) for each, label in pairs if label != out_of_scope]
    best = [each.labels[0].label for each, _ in in_scope]
    gold = [label for _, label in in_scope]
    figures = {"accuracy": accuracy(best, gold)}
    figures["refused"] = _percentage(each.out_of_scope for each, _ in in_scope)
    if outside := [each for each, label in pairs if label == out_of_scope]:
        assigned = [each.labels[0].label if each.labels[0].assigned else "" for each, _ in in_scope]
        figures["in_scope_accuracy"] = accuracy(assigned, gold)
        figures["out_of_scope_recall"] = _percentage(each.out_of_scope for each in outside)
    return figures


def _entity_figures(predicted: Sequence[Prediction], texts: LabelledTexts) -> dict[str, float]:
    entities = [
        _predicted_entities(each, row.text, texts.encoded.pieces(index))
        for index, (each, row) in enumerate(zip(predicted, texts.rows, strict=True))
    ]
    return entity_scores(entities, gold_entities(texts.rows))


def _predicted_entities(predicted: Prediction, text: str, pieces: Spans) -> list[Entity]:
    assert isinstance(predicted, TokenPrediction), "a token head predicts spans"
    spans = [
        (pieces[span.first][0], pieces[span.last - 1][1], span.label, span.score)
        for span in predicted.spans
    ]
    return whole_word_entities(text, spans)


def _sequence_predictions(predicted: Sequence[Prediction]) -> list[SequencePrediction]:
    return [each for each in predicted if isinstance(each, SequencePrediction)]


def _percentage(values: Iterable[bool | None]) -> float:
    flags = list(map(bool, values))
    return 100 * sum(flags) / max(len(flags), 1)
