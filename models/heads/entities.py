"""Labels of words and of word pieces, the entities that they name, and scores. Pure.

Words and pieces are characters of one text, as [first, one past the last]. Scores are in percent.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from models.heads.rows import OUTSIDE, Row
from winnow.text.entities import LabelledSpan, to_entities

Spans = Sequence[tuple[int, int]]
Entity = tuple[int, int, str]
"""First character, one past the last, and the label."""


def label_pieces(pieces: Spans, words: Spans, labels: Sequence[str]) -> list[str]:
    """Returns the label of each piece: of its word, `B-` only at the word's first piece."""
    found, place, began = [], 0, -1
    for start, _ in pieces:
        while place < len(words) - 1 and start >= words[place][1]:
            place += 1
        label = labels[place]
        if label.startswith("B-") and began == place:
            label = f"I-{label[2:]}"
        began = place
        found.append(label)
    return found


def entities(words: Spans, labels: Sequence[str]) -> list[Entity]:
    """Returns the entities that BIO labels name; an `I-` that continues nothing begins one, as
    CoNLL's own script has it.
    """
    found: list[Entity] = []
    open_label = ""
    for (start, end), label in zip(words, labels, strict=True):
        name = "" if label == OUTSIDE else label[2:]
        if name and label.startswith("I-") and name == open_label:
            found[-1] = (found[-1][0], end, name)
        elif name:
            found.append((start, end, name))
        open_label = name
    return found


def in_words(text: str, spans: Iterable[LabelledSpan]) -> list[Entity]:
    """Spans as the server returns them."""
    return [(each.start, each.end, each.label) for each in to_entities(text, spans)]


def found_entities(text: str, pieces: Spans, labels: Sequence[str]) -> list[Entity]:
    """Returns the entities that labels of pieces name, all with the same score."""
    return in_words(text, [(*each, 0.0) for each in entities(pieces, labels)])


def right_entities(rows: Sequence[Row]) -> list[list[Entity]]:
    """Returns the entities that the labels of words name."""
    return [entities(row.words, row.labels) for row in rows]


def accuracy(predicted: Sequence[object], right: Sequence[object]) -> float:
    """Returns the percentage of equal labels."""
    return 100 * sum(s == r for s, r in zip(predicted, right, strict=True)) / max(len(right), 1)


def entity_scores(
    predicted: Sequence[Sequence[Entity]], right: Sequence[Sequence[Entity]]
) -> dict[str, float]:
    """Precision, recall and F1 of entities of all texts together: characters and label must be
    the same (Tjong Kim Sang and De Meulder, 2003, CoNLL-2003).
    """
    return overlap([set(each) for each in predicted], [set(each) for each in right], "entity_")


def label_scores(
    predicted: Sequence[AbstractSet[object]], right: Sequence[AbstractSet[object]]
) -> dict[str, float]:
    """Precision, recall and F1 of the labels of all texts together."""
    return overlap(predicted, right, "label_")


def overlap(
    predicted: Sequence[AbstractSet[object]], right: Sequence[AbstractSet[object]], prefix: str
) -> dict[str, float]:
    """Precision, recall and F1, micro-averaged; 0 where there is nothing to divide by."""
    both = sum(len(s & r) for s, r in zip(predicted, right, strict=True))
    precision = 100 * both / max(sum(map(len, predicted)), 1)
    recall = 100 * both / max(sum(map(len, right)), 1)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}f1": f1}
