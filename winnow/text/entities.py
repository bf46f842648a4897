"""Turns labelled spans of a text into entities: whole words that do not overlap. Pure."""

from collections.abc import Iterable

from winnow.domain.prediction import Entity
from winnow.text.words import whole_words

Labelled = tuple[int, int, str, float]
"""A span: first character, one past the last (in code points), label and score."""


def in_whole_words(text: str, spans: Iterable[Labelled]) -> tuple[Entity, ...]:
    """The entities of the spans, in the order of the text.

    Spans are grown to whole words. Of two in one word only the more probable stays; of two equally
    probable ones, the first.
    """
    kept: list[Entity] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        entity = _entity(text, span)
        if not kept or kept[-1].end <= entity.start:
            kept.append(entity)
        elif kept[-1].score < entity.score:
            kept[-1] = entity
    return tuple(each for each in kept if each.start < each.end)


def _entity(text: str, span: Labelled) -> Entity:
    first, last, label, score = span
    start, end = whole_words(text, first, last)
    return Entity(label=label, text=text[start:end], start=start, end=end, score=score)
