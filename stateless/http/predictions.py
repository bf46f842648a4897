"""Serves `/v1/predict` and `/v1/heads`: converts requests and replies of the predict core."""

from functools import partial

from winnow.convert import head as convert
from winnow.rpc import request_id
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.servicer import MAX_MESSAGE_BYTES
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, NewDeadline
from winnow.stateless.http.headers import before_deadline
from winnow.v1 import head_pb2


def predict_operations(core: PredictCore, default_deadline: float) -> list[HttpOperation]:
    """Returns the operations of the predict core.

    `default_deadline` is the deadline in seconds of a call whose caller sets none.
    """
    return [
        HttpOperation(
            name="Predict",
            path="/v1/predict",
            about="Predicts labels and entities: encodes each text once and applies every head to "
            "the encoding.",
            scope="predict",
            run=partial(_predict, core),
            request=head_pb2.PredictRequest,
            response=head_pb2.PredictResponse,
            default_deadline=default_deadline,
            max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
        ),
        HttpOperation(
            name="ListHeads",
            verb="GET",
            path="/v1/heads",
            about="Lists the encoder groups of this front, and the heads that are in memory.",
            scope="predict",
            run=partial(_list_heads, core),
            request=head_pb2.ListHeadsRequest,
            response=head_pb2.ListHeadsResponse,
            default_deadline=default_deadline,
        ),
    ]


async def _predict(
    core: PredictCore, message: head_pb2.PredictRequest, new_deadline: NewDeadline, client: str
) -> head_pb2.PredictResponse:
    deadline, request = new_deadline(), convert.request_of_message(message)
    predicted = await before_deadline(core.predict(request, deadline, client), deadline)
    return convert.predicted_to_message(predicted, request_id.current())


async def _list_heads(
    core: PredictCore, message: head_pb2.ListHeadsRequest, _new_deadline: NewDeadline, _client: str
) -> head_pb2.ListHeadsResponse:
    groups = core.groups(message.ring)
    return head_pb2.ListHeadsResponse(rings=map(convert.encoder_group_to_message, groups))
