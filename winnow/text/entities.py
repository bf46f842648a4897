"""Converts labelled spans of a text to entities: whole words that do not overlap. Pure."""

from collections.abc import Iterable

from winnow.domain.prediction import Entity
from winnow.text.words import whole_words

LabelledSpan = tuple[int, int, str, float]
"""Start and end (exclusive) in code points, label and score of a span."""


def to_entities(text: str, spans: Iterable[LabelledSpan]) -> tuple[Entity, ...]:
    """Extends spans to whole words; returns the entities in the order of the text.

    Of overlapping entities, only the one with the highest score stays; of equal scores, the first.
    """
    entities: list[Entity] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        entity = _entity(text, span)
        if not entities or entities[-1].end <= entity.start:
            entities.append(entity)
        elif entities[-1].score < entity.score:
            entities[-1] = entity
    return tuple(each for each in entities if each.start < each.end)


def _entity(text: str, span: LabelledSpan) -> Entity:
    span_start, span_end, label, score = span
    start, end = whole_words(text, span_start, span_end)
    return Entity(label=label, text=text[start:end], start=start, end=end, score=score)
