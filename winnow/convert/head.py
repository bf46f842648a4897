"""Converts predictions of heads to messages of `head.proto` and back."""

from winnow.caller import message_of
from winnow.convert.by_name import milliseconds, same_fields
from winnow.domain.prediction import (
    EncoderGroupInfo,
    HeadPrediction,
    PredictionReply,
    PredictRequest,
    TextPrediction,
)
from winnow.v1 import head_pb2


def request_of_message(message: head_pb2.PredictRequest) -> PredictRequest:
    return PredictRequest(message.text, tuple(message.texts), tuple(message.head_ids), message.ring)


def predicted_to_message(predicted: PredictionReply, request_id: str) -> head_pb2.PredictResponse:
    stages = ("queue", "tokenise", "encode", "heads", "total")
    return head_pb2.PredictResponse(
        results=map(_text_to_message, predicted.results),
        ring=predicted.group,
        timings=head_pb2.PredictTimings(**milliseconds(predicted.timings, *stages)),
        request_id=request_id,
    )


def head_to_message(prediction: HeadPrediction) -> head_pb2.HeadPrediction:
    """Converts the prediction of one head, or its failure."""
    return head_pb2.HeadPrediction(
        head_id=prediction.head_id,
        version=prediction.version,
        failure=_reason(prediction),
        labels=(head_pb2.LabelScore(**same_fields(each)) for each in prediction.labels),
        out_of_scope=prediction.out_of_scope,
        entities=(head_pb2.Entity(**same_fields(each)) for each in prediction.entities),
    )


def encoder_group_to_message(group: EncoderGroupInfo) -> head_pb2.Ring:
    """Converts an encoder group and its heads in memory."""
    return head_pb2.Ring(
        name=group.name,
        encoder_fingerprint=group.fingerprint,
        budget_bytes=group.budget_bytes,
        warm=(head_pb2.WarmHead(**same_fields(each)) for each in group.warm),
    )


def _reason(prediction: HeadPrediction) -> str:
    if prediction.failure is None:
        return ""
    # an empty string would mean that the head succeeded
    return message_of(prediction.failure) or type(prediction.failure).__name__


def _text_to_message(text: TextPrediction) -> head_pb2.TextPrediction:
    return head_pb2.TextPrediction(
        heads=map(head_to_message, text.heads), text_truncated=text.truncated
    )
