"""Entities of a text as a server makes them out of spans of word pieces. Pure."""

from collections.abc import Iterable, Sequence

from models.heads.alignment import Entity, Spans, entities
from models.heads.rows import Row
from winnow.text.entities import Labelled, in_whole_words


def grown(text: str, spans: Iterable[Labelled]) -> list[Entity]:
    """Spans as the server returns them."""
    return [(each.start, each.end, each.label) for each in in_whole_words(text, spans)]


def found_entities(text: str, pieces: Spans, labels: Sequence[str]) -> list[Entity]:
    """What labels of pieces name, none more probable than another."""
    return grown(text, [(*each, 0.0) for each in entities(pieces, labels)])


def right_entities(rows: Sequence[Row]) -> list[list[Entity]]:
    """What the labels of words name."""
    return [entities(row.words, row.labels) for row in rows]
