"""Serves `/v1/predict` and `/v1/heads`: converts requests and replies of the predict core."""

from functools import partial

from winnow.convert import head as convert
from winnow.deadline import Deadline
from winnow.rpc import request_id
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.servicer import MAX_MESSAGE_BYTES
from winnow.stateless.http.call import MAX_ESCAPED_BYTES, HttpOperation, OperationLimits
from winnow.stateless.http.rpc_operation import rpc_operation
from winnow.v1 import head_pb2

_SERVICE = head_pb2.DESCRIPTOR.services_by_name["HeadService"]


def predict_operations(core: PredictCore, limits: OperationLimits) -> list[HttpOperation]:
    """Returns the operations of the predict core."""
    operation = partial(rpc_operation, _SERVICE, scope="predict", limits=limits)
    return [
        operation(
            "Predict",
            partial(_predict, core),
            "/v1/predict",
            "Predicts labels and entities: encodes each text once and applies every head to "
            "the encoding.",
            max_body_bytes=MAX_MESSAGE_BYTES * MAX_ESCAPED_BYTES,
        ),
        operation(
            "ListHeads",
            partial(_list_heads, core),
            "/v1/heads",
            "Lists the encoder groups of this front, and the heads that are in memory.",
            verb="GET",
        ),
    ]


async def _predict(
    core: PredictCore, message: head_pb2.PredictRequest, deadline: Deadline, client: str
) -> head_pb2.PredictResponse:
    predicted = await core.predict(convert.request_of_message(message), deadline, client)
    return convert.predicted_to_message(predicted, request_id.current())


async def _list_heads(
    core: PredictCore, message: head_pb2.ListHeadsRequest, _deadline: Deadline, _client: str
) -> head_pb2.ListHeadsResponse:
    groups = core.groups(message.ring)
    return head_pb2.ListHeadsResponse(rings=map(convert.encoder_group_to_message, groups))
