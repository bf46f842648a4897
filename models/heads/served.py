"""Entities of a text as a server makes them out of spans of word pieces. Pure."""

from collections.abc import Iterable, Sequence

from models.heads.alignment import Entity, Spans, entities
from models.heads.rows import Row
from winnow.text.words import whole_words

Scored = tuple[int, int, str, float]
"""First character, one past the last, label and score."""


def grown(text: str, spans: Iterable[Scored]) -> list[Entity]:
    """Spans grown to whole words; of two in one word the more probable stays, else the first."""
    kept: list[Scored] = []
    for first, last, label, score in sorted(spans):
        start, end = whole_words(text, first, last)
        if not kept or kept[-1][1] <= start:
            kept.append((start, end, label, score))
        elif kept[-1][3] < score:
            kept[-1] = (start, end, label, score)
    return [(start, end, label) for start, end, label, _ in kept]


def found_entities(text: str, pieces: Spans, labels: Sequence[str]) -> list[Entity]:
    """What labels of pieces name, none more probable than another."""
    return grown(text, [(*each, 0.0) for each in entities(pieces, labels)])


def right_entities(rows: Sequence[Row]) -> list[list[Entity]]:
    """What the labels of words name."""
    return [entities(row.words, row.labels) for row in rows]
