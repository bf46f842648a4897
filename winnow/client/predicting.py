"""Texts and heads to messages of the head service, and its messages to plain values."""

from collections.abc import Sequence

from winnow.client.predictions import HeadPrediction, Predictions, PredictTimings, TextPrediction
from winnow.domain.prediction import Entity, LabelScore
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import shortened
from winnow.v1 import head_pb2


def predict_message(
    text: str | Sequence[str], heads: str | Sequence[str], ring: str = ""
) -> head_pb2.PredictRequest:
    """The message that asks for predictions. Raises InvalidRequestError if a value has the wrong
    type; limits are checked by the front node.
    """
    given = {
        "text" if isinstance(text, str) else "texts": text,
        "head_ids": [heads] if isinstance(heads, str) else heads,
        "ring": ring,
    }
    message, violations = head_pb2.PredictRequest(), []
    for name, value in given.items():
        try:
            message.MergeFrom(head_pb2.PredictRequest(**{name: value}))  # type: ignore[arg-type]
        except (TypeError, ValueError) as error:
            violations.append(Violation(name, shortened(str(error))))
    if violations:
        raise InvalidRequestError(*violations)
    return message


def predictions_of(
    request: head_pb2.PredictRequest, message: head_pb2.PredictResponse
) -> Predictions:
    """The reply to `request`."""
    texts, timings = request.texts or [request.text], message.timings
    return Predictions(
        results=tuple(
            TextPrediction(text, heads_of(result.heads), result.text_truncated)
            for text, result in zip(texts, message.results, strict=True)
        ),
        ring=message.ring,
        timings=PredictTimings(
            timings.queue_ms,
            timings.tokenise_ms,
            timings.encode_ms,
            timings.heads_ms,
            timings.total_ms,
        ),
        request_id=message.request_id,
    )


def heads_of(messages: Sequence[head_pb2.HeadPrediction]) -> tuple[HeadPrediction, ...]:
    """What each head says."""
    return tuple(map(_head, messages))


def _head(message: head_pb2.HeadPrediction) -> HeadPrediction:
    return HeadPrediction(
        head_id=message.head_id,
        version=message.version,
        failure=message.failure,
        labels=tuple(LabelScore(each.label, each.score, each.assigned) for each in message.labels),
        out_of_scope=message.out_of_scope if message.HasField("out_of_scope") else None,
        entities=tuple(
            Entity(each.label, each.text, each.start, each.end, each.score)
            for each in message.entities
        ),
    )
