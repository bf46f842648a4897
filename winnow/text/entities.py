"""Labelled spans of a text to entities: whole words, none over another. Pure."""

from collections.abc import Iterable

from winnow.domain.prediction import Entity
from winnow.text.words import whole_words

Labelled = tuple[int, int, str, float]
"""First character, one past the last (in code points), label and score."""


def in_whole_words(text: str, spans: Iterable[Labelled]) -> tuple[Entity, ...]:
    """The entities of `text` that the spans are, in the order of the text.

    Spans are grown to whole words. Of two in one word only the more probable stays, the first of
    equals.
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
