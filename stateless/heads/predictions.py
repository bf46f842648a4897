"""Builds the predictions that callers get: labels, entities of whole words, or a failure."""

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
    """Returns the prediction of a head that was applied to a text, or the head's failure."""
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
    """Returns the result of a head that failed, without names of stores and files."""
    if isinstance(error, NotFoundError):
        error = NotFoundError(f"there is no head {quoted(head)} in this encoder group")
    if not isinstance(error, _PUBLIC_ERRORS):
        _log.error("head failed", head=head, error=str(error), exc_info=error)
        error = UnavailableError(f"head {head} cannot be applied; the server's log has the details")
    return HeadPrediction(head_id=head, failure=error)


def no_result_error(head: str) -> UnavailableError:
    """Returns the error of a head without a result, which is a bug in the code that applied it."""
    return UnavailableError(f"head {head} returned no result")


def failed_predictions(ids: Sequence[str], error: WinnowError) -> tuple[HeadPrediction, ...]:
    """Returns the result of several heads that failed for the same reason."""
    return tuple(failed_prediction(each, error) for each in ids)


def entities(text: str, offsets: Offsets, spans: Iterable[TokenSpan]) -> tuple[Entity, ...]:
    """Returns the entities of `text` at these spans of its tokens, extended to whole words.

    Raises:
        UnavailableError: a span is outside the tokens of the text, so the head read another text.

    """
    return to_entities(text, [_to_characters(offsets, span) for span in spans])


def _to_characters(offsets: Offsets, span: TokenSpan) -> LabelledSpan:
    if not 0 <= span.first < span.last <= len(offsets):
        raise UnavailableError(
            f"the head returned a span of tokens {span.first} to {span.last}, but the text has "
            f"{len(offsets)} tokens"
        )
    return offsets[span.first][0], offsets[span.last - 1][1], span.label, span.score
