"""The call that applies heads, and its reply as plain values.

`winnow/v1/head.proto` defines scores and offsets.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from functools import partial
from typing import Any

from winnow.client.calls import Call
from winnow.client.requests import build_request
from winnow.convert.by_name import value_of_message
from winnow.domain.prediction import Entity, LabelScore
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
    """Labels, the best first; empty for heads that find entities."""
    out_of_scope: bool | None = None
    """Whether no label fits; None if the head cannot tell."""
    entities: tuple[Entity, ...] = ()
    """Entities in the order of the text. `entity.text == text[entity.start:entity.end]`."""

    @property
    def label(self) -> str | None:
        """The best assigned label; None if no label is assigned."""
        return next((each.label for each in self.labels if each.assigned), None)


@dataclass(frozen=True, slots=True)
class TextPrediction:
    """A text, and the prediction of each head in the order of the request."""

    text: str
    heads: tuple[HeadPrediction, ...]
    truncated: bool = False
    """Whether the text was cut: the encoder has a maximum length."""

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values: enums by value, non-finite figures as None."""
        return dict(json_value(asdict(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictTimings:
    """Milliseconds of each stage, summed over all texts, as the front node measured them."""

    queue_ms: float = 0.0
    tokenise_ms: float = 0.0
    encode_ms: float = 0.0
    heads_ms: float = 0.0
    total_ms: float = 0.0
    """Elapsed time. It may be less than the sum: texts are processed in parallel."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """The predictions for one text or several."""

    results: tuple[TextPrediction, ...]
    """The predictions for each text, in the order of the request."""
    ring: str
    """Name of the encoder group that predicted."""
    timings: PredictTimings
    request_id: str
    """Id of the request in the logs of every process that worked on the texts."""

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values: enums by value, non-finite figures as None."""
        return dict(json_value(asdict(self)))


def predict_call(
    text: str | Sequence[str], heads: str | Sequence[str], ring: str
) -> Call[Predictions]:
    """The call that applies heads.

    Raises InvalidRequestError if a value has the wrong type. The front node checks limits.
    """
    fields = {
        "text" if isinstance(text, str) else "texts": text,
        "head_ids": [heads] if isinstance(heads, str) else heads,
        "ring": ring,
    }
    request = build_request(head_pb2.PredictRequest, fields)
    texts = request.texts or [request.text]
    stub = head_pb2_grpc.HeadServiceStub
    return Call(stub, "Predict", request, partial(_predictions, texts))


def _predictions(texts: Sequence[str], message: head_pb2.PredictResponse) -> Predictions:
    results = (
        TextPrediction(text, head_predictions(result.heads), result.text_truncated)
        for text, result in zip(texts, message.results, strict=True)
    )
    timings = value_of_message(PredictTimings, message.timings)
    return value_of_message(Predictions, message, results=tuple(results), timings=timings)


def head_predictions(messages: Sequence[head_pb2.HeadPrediction]) -> tuple[HeadPrediction, ...]:
    """Converts the predictions of several heads."""
    return tuple(map(_head_prediction, messages))


def _head_prediction(message: head_pb2.HeadPrediction) -> HeadPrediction:
    labels = tuple(value_of_message(LabelScore, each) for each in message.labels)
    entities = tuple(value_of_message(Entity, each) for each in message.entities)
    return value_of_message(HeadPrediction, message, labels=labels, entities=entities)


def json_value(value: Any) -> Any:
    """Converts a value to JSON values: enums by value, non-finite figures as None."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
