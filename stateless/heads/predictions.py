"""Builds the predictions that callers get: labels, entities in whole words, or a failure."""

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
_PUBLIC_ERRORS = (
    NotFoundError,
    IdentityError,
    OverloadedError,
    DeadlineExceededError,
    UnavailableError,
)
"""Errors that callers get unchanged. Any other error may name files of the server."""

Offsets = Sequence[tuple[int, int]]
"""Start and end of each token in the text, in code points; the end is exclusive."""


def prediction_of(text: EncodedText, applied: Applied) -> HeadPrediction:
    """The prediction of a head that was applied to a text, or its failure."""
    prediction = applied.prediction
    if prediction is None:
        return failed_prediction(applied.head, applied.failure or no_result_error(applied.head))
    if isinstance(prediction, SequencePrediction):
        return HeadPrediction(
            head_id=applied.head,
            version=applied.version,
            labels=prediction.labels,
            out_of_scope=prediction.out_of_scope,
        )
    try:
        found = entities(text.text, text.tokens.offsets, prediction.spans)
    except WinnowError as error:
        return failed_prediction(applied.head, error)
    return HeadPrediction(head_id=applied.head, version=applied.version, entities=found)


def failed_prediction(head: str, error: WinnowError) -> HeadPrediction:
    """The result of a head that failed. It hides the names of stores and files from callers."""
    if isinstance(error, NotFoundError):
        error = NotFoundError(f"there is no head {quoted(head)} in this encoder group")
    if not isinstance(error, _PUBLIC_ERRORS):
        _log.error("head failed", head=head, error=str(error), exc_info=error)
        error = UnavailableError(f"head {head} cannot be applied; the server's log has the details")
    return HeadPrediction(head_id=head, failure=error)


def no_result_error(head: str) -> UnavailableError:
    """The error of a head without a result. It is a bug in the code that applied the head."""
    return UnavailableError(f"head {head} returned no result")


def failed_predictions(ids: Sequence[str], error: WinnowError) -> tuple[HeadPrediction, ...]:
    """The same failure for each head."""
    return tuple(failed_prediction(each, error) for each in ids)


def entities(text: str, offsets: Offsets, spans: Iterable[TokenSpan]) -> tuple[Entity, ...]:
    """The entities of `text` at these spans of its tokens, extended to whole words.

    Raises:
        UnavailableError: a span is beyond the tokens of the text: the head read another text.

    """
    return to_entities(text, [_characters(offsets, span) for span in spans])


def _characters(offsets: Offsets, span: TokenSpan) -> LabelledSpan:
    if not 0 <= span.first < span.last <= len(offsets):
        raise UnavailableError(
            f"the head returned tokens {span.first} to {span.last} of a text of {len(offsets)}"
        )
    return offsets[span.first][0], offsets[span.last - 1][1], span.label, span.score
