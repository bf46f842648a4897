"""Predictions of heads: the call, and its reply as plain values.

Scores and offsets mean what `winnow/v1/head.proto` says of them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from typing import Any

from winnow.client.calls import Call
from winnow.convert.by_name import value_of_message
from winnow.domain.prediction import Entity, LabelScore
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import shortened
from winnow.v1 import head_pb2, head_pb2_grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPrediction:
    """The prediction of one head for a text."""

    head_id: str
    version: int = 0
    """Version of the head; 0 if there is no prediction."""
    failure: str = ""
    """Why there is no prediction; empty if there is one."""
    labels: tuple[LabelScore, ...] = ()
    """Best first; empty for heads that find entities."""
    out_of_scope: bool | None = None
    """Whether no label fits; None if the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """In the order of the text; `entity.text == text[entity.start:entity.end]`, always."""

    @property
    def label(self) -> str | None:
        """The best label that the text is given, or None if it is given none."""
        return next((each.label for each in self.labels if each.assigned), None)


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """A text and the predictions of its heads, in the order of the request."""

    text: str
    heads: tuple[HeadPrediction, ...]
    truncated: bool = False
    """The text was longer than the encoder reads, and was cut."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: scores that are not finite become None."""
        return dict(plain(asdict(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictTimings:
    """Milliseconds spent in each stage by all texts together, as the front node measured them."""

    queue_ms: float = 0.0
    tokenise_ms: float = 0.0
    encode_ms: float = 0.0
    heads_ms: float = 0.0
    total_ms: float = 0.0
    """Elapsed time: texts are worked on at the same time."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions for one text or several."""

    results: tuple[TextPrediction, ...]
    """One for each text, in the order of the request."""
    ring: str
    """Name of the encoder group that predicted."""
    timings: PredictTimings
    request_id: str
    """Id of the request in the logs of every process that worked on the texts."""

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON has it: figures that are not finite become None."""
        return dict(plain(asdict(self)))


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


def predict_call(
    text: str | Sequence[str], heads: str | Sequence[str], ring: str
) -> Call[Predictions]:
    """The call that applies heads. Raises as `predict_message` does."""
    request = predict_message(text, heads, ring)
    texts = request.texts or [request.text]
    stub = head_pb2_grpc.HeadServiceStub
    return Call(stub, "Predict", request, partial(_predictions, texts))


def _predictions(texts: Sequence[str], message: head_pb2.PredictResponse) -> Predictions:
    results = (
        TextPrediction(text, heads_of(result.heads), result.text_truncated)
        for text, result in zip(texts, message.results, strict=True)
    )
    timings = value_of_message(PredictTimings, message.timings)
    return value_of_message(Predictions, message, results=tuple(results), timings=timings)


def heads_of(messages: Sequence[head_pb2.HeadPrediction]) -> tuple[HeadPrediction, ...]:
    """The predictions of several heads."""
    return tuple(map(_head, messages))


def _head(message: head_pb2.HeadPrediction) -> HeadPrediction:
    labels = tuple(value_of_message(LabelScore, each) for each in message.labels)
    entities = tuple(value_of_message(Entity, each) for each in message.entities)
    return value_of_message(HeadPrediction, message, labels=labels, entities=entities)


def plain(value: Any) -> Any:
    """A value as JSON has it: enums by value; figures that are not finite become None."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
