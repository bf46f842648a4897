"""What is predicted: domain values to messages of `head.proto` and back."""

from winnow.caller import message_of
from winnow.domain.prediction import (
    EncoderGroupInfo,
    Entity,
    HeadInMemory,
    HeadPrediction,
    LabelScore,
    Predicted,
    PredictRequest,
    PredictTimings,
    TextPrediction,
)
from winnow.v1 import head_pb2


def request_of_message(message: head_pb2.PredictRequest) -> PredictRequest:
    """The request as its caller made it."""
    return PredictRequest(message.text, tuple(message.texts), tuple(message.head_ids), message.ring)


def predicted_to_message(predicted: Predicted, request_id: str) -> head_pb2.PredictResponse:
    """The reply to a user."""
    return head_pb2.PredictResponse(
        results=map(_text_to_message, predicted.results),
        ring=predicted.group,
        timings=_timings_to_message(predicted.timings),
        request_id=request_id,
    )


def head_to_message(said: HeadPrediction) -> head_pb2.HeadPrediction:
    """What one head says; or why it says nothing."""
    return head_pb2.HeadPrediction(
        head_id=said.head_id,
        version=said.version,
        failure=_why(said),
        labels=map(_label_to_message, said.labels),
        out_of_scope=said.out_of_scope,
        entities=map(_entity_to_message, said.entities),
    )


def encoder_group_to_message(group: EncoderGroupInfo) -> head_pb2.Ring:
    """An encoder group, and its heads in memory."""
    return head_pb2.Ring(
        name=group.name,
        encoder_fingerprint=group.fingerprint,
        budget_bytes=group.budget_bytes,
        warm=map(_warm_to_message, group.warm),
    )


def _why(said: HeadPrediction) -> str:
    if said.failure is None:
        return ""
    return message_of(said.failure) or type(said.failure).__name__  # never empty where there is one


def _text_to_message(text: TextPrediction) -> head_pb2.TextPrediction:
    return head_pb2.TextPrediction(
        heads=map(head_to_message, text.heads), text_truncated=text.truncated
    )


def _label_to_message(label: LabelScore) -> head_pb2.LabelScore:
    return head_pb2.LabelScore(label=label.label, score=label.score, assigned=label.assigned)


def _entity_to_message(entity: Entity) -> head_pb2.Entity:
    return head_pb2.Entity(
        label=entity.label,
        text=entity.text,
        start=entity.start,
        end=entity.end,
        score=entity.score,
    )


def _warm_to_message(head: HeadInMemory) -> head_pb2.WarmHead:
    return head_pb2.WarmHead(
        head_id=head.head_id, version=head.version, bytes=head.bytes, pinned=head.pinned
    )


def _timings_to_message(timings: PredictTimings) -> head_pb2.PredictTimings:
    return head_pb2.PredictTimings(
        queue_ms=timings.queue * 1e3,
        tokenise_ms=timings.tokenise * 1e3,
        encode_ms=timings.encode * 1e3,
        heads_ms=timings.heads * 1e3,
        total_ms=timings.total * 1e3,
    )
