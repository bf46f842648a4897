"""Spans of tokens to entities: words of the source text. Pure."""

from collections.abc import Iterable, Sequence

from winnow.domain.prediction import Entity, TokenSpan
from winnow.errors import UnavailableError
from winnow.text.words import whole_words

Offsets = Sequence[tuple[int, int]]
"""Of each token its first character and one past its last, in code points."""


def entities(text: str, offsets: Offsets, spans: Iterable[TokenSpan]) -> tuple[Entity, ...]:
    """The entities of `text` that the spans of its tokens are, in the order of the text.

    Spans are grown to whole words. Of two in one word only the more probable stays, the first of
    equals.

    Raises:
        UnavailableError: a span is of tokens that are not there: the head read another text.

    """
    kept: list[Entity] = []
    for span in sorted(spans, key=lambda span: (span.first, span.last)):
        entity = _entity(text, offsets, span)
        if not kept or kept[-1].end <= entity.start:
            kept.append(entity)
        elif kept[-1].score < entity.score:
            kept[-1] = entity
    return tuple(each for each in kept if each.start < each.end)


def _entity(text: str, offsets: Offsets, span: TokenSpan) -> Entity:
    if not 0 <= span.first < span.last <= len(offsets):
        raise UnavailableError(
            f"the head labels tokens {span.first} to {span.last} of {len(offsets)}"
        )
    start, end = whole_words(text, offsets[span.first][0], offsets[span.last - 1][1])
    return Entity(span.label, text[start:end], start, end, span.score)
