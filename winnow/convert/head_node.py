"""Converts calls to head servers, and their results, to messages of `head_node.proto` and back."""

from collections.abc import Sequence

import grpc

from winnow.convert.encoder import States, states_of_message, states_to_message
from winnow.domain.encoder import StatesFormat
from winnow.domain.prediction import (
    Applied,
    LabelScore,
    Prediction,
    SequencePrediction,
    TokenPrediction,
    TokenSpan,
)
from winnow.errors import WinnowError
from winnow.rpc.status import code_of, error_of, public_node_message
from winnow.v1 import head_node_pb2

_CODE_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


def request_to_message(
    states: States, head_ids: Sequence[str], fingerprint: str
) -> head_node_pb2.ApplyRequest:
    """Converts a request to a head server.

    States are sent as float16. Local heads use float16, too, so that their results are equal.
    """
    return head_node_pb2.ApplyRequest(
        encoder_fingerprint=fingerprint,
        states=states_to_message(states, StatesFormat.FLOAT16),
        head_ids=head_ids,
    )


def states_of_request(message: head_node_pb2.ApplyRequest) -> States:
    """Converts the states of a request; raises InvalidRequestError if they are invalid."""
    return states_of_message(message.states)


def applied_to_message(applied: Applied) -> head_node_pb2.AppliedHead:
    """Converts the result of a head."""
    message = head_node_pb2.AppliedHead(
        head_id=applied.head, version=applied.version, moved_to=applied.moved_to
    )
    if applied.failure is not None:
        message.failure.code = code_of(applied.failure).value[0]
        message.failure.message = str(applied.failure)
    if isinstance(applied.prediction, SequencePrediction):
        for label in applied.prediction.labels:
            message.labels.add(label=label.label, score=label.score, assigned=label.assigned)
        if applied.prediction.out_of_scope is not None:
            message.out_of_scope = applied.prediction.out_of_scope
    elif isinstance(applied.prediction, TokenPrediction):
        for span in applied.prediction.spans:
            message.spans.add(label=span.label, first=span.first, last=span.last, score=span.score)
    return message


def applied_of_message(message: head_node_pb2.AppliedHead) -> Applied:
    """Converts the result of a head."""
    failed = message.HasField("failure")
    return Applied(
        head=message.head_id,
        version=message.version,
        prediction=None if failed else _prediction(message),
        failure=_failure(message.failure) if failed else None,
        moved_to=message.moved_to,
    )


def _prediction(message: head_node_pb2.AppliedHead) -> Prediction:
    """Converts a prediction. Only a token head without spans has neither labels nor spans."""
    if message.labels:
        labels = tuple(LabelScore(each.label, each.score, each.assigned) for each in message.labels)
        outside = message.out_of_scope if message.HasField("out_of_scope") else None
        return SequencePrediction(labels, outside)
    return TokenPrediction(
        tuple(TokenSpan(each.label, each.first, each.last, each.score) for each in message.spans)
    )


def _failure(message: head_node_pb2.Failure) -> WinnowError:
    error = error_of(_CODE_BY_NUMBER.get(message.code, grpc.StatusCode.UNKNOWN), message.message)
    return error.with_public(public_node_message(error))
