"""Converts labels of words and word pieces to entities, and scores predictions.

A span has the first character and one past the last in its text. Scores are in percent.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from models.heads.rows import OUTSIDE, Row
from winnow.text.entities import LabelledSpan, to_entities

Spans = Sequence[tuple[int, int]]
Entity = tuple[int, int, str]
"""First character, one past the last, and the label."""


def label_pieces(pieces: Spans, words: Spans, labels: Sequence[str]) -> list[str]:
    """Returns the label of each word piece.

    A piece has the label of its word. `B-` becomes `I-` after the word's first piece.
    """
    piece_labels, word, previous = [], 0, -1
    for start, _ in pieces:
        while word < len(words) - 1 and start >= words[word][1]:
            word += 1
        label = labels[word]
        if label.startswith("B-") and previous == word:
            label = f"I-{label[2:]}"
        previous = word
        piece_labels.append(label)
    return piece_labels


def bio_entities(words: Spans, labels: Sequence[str]) -> list[Entity]:
    """Returns the entities of BIO labels.

    An `I-` without a preceding label of its kind begins an entity, as in CoNLL's script.
    """
    entities: list[Entity] = []
    open_label = ""
    for (start, end), label in zip(words, labels, strict=True):
        name = "" if label == OUTSIDE else label[2:]
        if name and label.startswith("I-") and name == open_label:
            entities[-1] = (entities[-1][0], end, name)
        elif name:
            entities.append((start, end, name))
        open_label = name
    return entities


def whole_word_entities(text: str, spans: Iterable[LabelledSpan]) -> list[Entity]:
    """Returns entities of spans, which are extended to whole words as by the server."""
    return [(each.start, each.end, each.label) for each in to_entities(text, spans)]


def predicted_entities(text: str, pieces: Spans, labels: Sequence[str]) -> list[Entity]:
    """Returns the whole-word entities of labelled word pieces."""
    return whole_word_entities(text, [(*each, 0.0) for each in bio_entities(pieces, labels)])


def gold_entities(rows: Sequence[Row]) -> list[list[Entity]]:
    """Returns the entities of every labelled row."""
    return [bio_entities(row.words, row.labels) for row in rows]


def accuracy(predicted: Sequence[object], gold: Sequence[object]) -> float:
    """Returns the percentage of predictions that equal the gold labels."""
    return 100 * sum(s == r for s, r in zip(predicted, gold, strict=True)) / max(len(gold), 1)


def entity_scores(
    predicted: Sequence[Sequence[Entity]], gold: Sequence[Sequence[Entity]]
) -> dict[str, float]:
    """Returns micro-averaged precision, recall and F1 of entities.

    Characters and label must be equal (Tjong Kim Sang and De Meulder, 2003, CoNLL-2003).
    """
    return _micro_average(list(map(set, predicted)), list(map(set, gold)), "entity_")


def label_scores(
    predicted: Sequence[AbstractSet[object]], gold: Sequence[AbstractSet[object]]
) -> dict[str, float]:
    """Returns micro-averaged precision, recall and F1 of the labels of all texts."""
    return _micro_average(predicted, gold, "label_")


def _micro_average(
    predicted: Sequence[AbstractSet[object]], gold: Sequence[AbstractSet[object]], prefix: str
) -> dict[str, float]:
    """Returns precision, recall and F1. A figure with denominator 0 is 0."""
    both = sum(len(s & r) for s, r in zip(predicted, gold, strict=True))
    precision = 100 * both / max(sum(map(len, predicted)), 1)
    recall = 100 * both / max(sum(map(len, gold)), 1)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}f1": f1}
