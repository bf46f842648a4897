"""Predictions as callers are told them: labels, entities in whole words, or a failure."""

from collections.abc import Iterable, Sequence

import structlog

from winnow.domain.prediction import Applied, Entity, HeadPrediction, SequencePrediction, TokenSpan
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import quoted
from winnow.stateless.heads.encoder_groups import EncodedText
from winnow.text.entities import LabelledSpan, to_entities

_log = structlog.get_logger("stateless")
_TELLING = (
    NotFoundError,
    IdentityError,
    OverloadedError,
    DeadlineExceededError,
    UnavailableError,
)
"""Errors that callers are told as they are. Any other one names the server's files."""

Offsets = Sequence[tuple[int, int]]
"""Of each token its first character and one past its last, in code points."""


def prediction_of(text: EncodedText, applied: Applied) -> HeadPrediction:
    """The prediction of a head that was applied to a text, or why there is none."""
    said = applied.prediction
    if said is None:
        return failed(applied.head, applied.failure or missing(applied.head))
    if isinstance(said, SequencePrediction):
        return HeadPrediction(
            head_id=applied.head,
            version=applied.version,
            labels=said.labels,
            out_of_scope=said.out_of_scope,
        )
    try:
        found = entities(text.text, text.tokens.offsets, said.spans)
    except WinnowError as error:
        return failed(applied.head, error)
    return HeadPrediction(head_id=applied.head, version=applied.version, entities=found)


def failed(head: str, error: WinnowError) -> HeadPrediction:
    """A head that failed. Callers are not told where it was looked for, nor names of files."""
    if isinstance(error, NotFoundError):
        error = NotFoundError(f"there is no head {quoted(head)} in this encoder group")
    if not isinstance(error, _TELLING):
        _log.error("head failed", head=head, error=str(error), exc_info=error)
        error = UnavailableError(f"head {head} cannot be applied; the server's log has the details")
    return HeadPrediction(head_id=head, failure=error)


def missing(head: str) -> UnavailableError:
    """The error of a head without a result: a mistake in the program that applied it."""
    return UnavailableError(f"nothing came back for head {head}")


def failures(ids: Sequence[str], error: WinnowError) -> tuple[HeadPrediction, ...]:
    """The same failure for each head."""
    return tuple(failed(each, error) for each in ids)


def entities(text: str, offsets: Offsets, spans: Iterable[TokenSpan]) -> tuple[Entity, ...]:
    """The entities of `text` at these spans of its tokens, grown to whole words.

    Raises:
        UnavailableError: a span is of tokens that are not there: the head read another text.

    """
    return to_entities(text, [_characters(offsets, span) for span in spans])


def _characters(offsets: Offsets, span: TokenSpan) -> LabelledSpan:
    if not 0 <= span.first < span.last <= len(offsets):
        raise UnavailableError(
            f"the head labels tokens {span.first} to {span.last} of {len(offsets)}"
        )
    return offsets[span.first][0], offsets[span.last - 1][1], span.label, span.score
