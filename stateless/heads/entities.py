"""Spans of tokens to entities: words of the source text. Pure."""

from collections.abc import Iterable, Sequence

from winnow.domain.prediction import Entity, TokenSpan
from winnow.errors import UnavailableError
from winnow.text.entities import Labelled, in_whole_words

Offsets = Sequence[tuple[int, int]]
"""Of each token its first character and one past its last, in code points."""


def entities(text: str, offsets: Offsets, spans: Iterable[TokenSpan]) -> tuple[Entity, ...]:
    """The entities of `text` that the spans of its tokens are, as `in_whole_words` has them.

    Raises:
        UnavailableError: a span is of tokens that are not there: the head read another text.

    """
    return in_whole_words(text, [_characters(offsets, span) for span in spans])


def _characters(offsets: Offsets, span: TokenSpan) -> Labelled:
    if not 0 <= span.first < span.last <= len(offsets):
        raise UnavailableError(
            f"the head labels tokens {span.first} to {span.last} of {len(offsets)}"
        )
    return offsets[span.first][0], offsets[span.last - 1][1], span.label, span.score
