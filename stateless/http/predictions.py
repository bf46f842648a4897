"""`/v1/predict` and `/v1/heads`: convert, call, convert."""

from functools import partial

from winnow.convert import head as convert
from winnow.rpc import request_id
from winnow.stateless.heads.core import PredictCore
from winnow.stateless.heads.servicer import LARGEST
from winnow.stateless.http.call import ESCAPED, HttpOperation, Until
from winnow.stateless.http.patience import in_time
from winnow.v1 import head_pb2


def predict_calls(core: PredictCore, seconds: float) -> list[HttpOperation]:
    """The predict core behind HTTP; `seconds` for a call whose caller sets no deadline."""
    return [
        HttpOperation(
            "Predict",
            "POST",
            "/v1/predict",
            "Predicts labels and entities: encodes each text once and applies every head to that.",
            "predict",
            partial(_predict, core),
            head_pb2.PredictRequest,
            head_pb2.PredictResponse,
            seconds,
            LARGEST * ESCAPED,
        ),
        HttpOperation(
            "ListHeads",
            "GET",
            "/v1/heads",
            "Lists the encoder groups of this front, and the heads that are in memory.",
            "predict",
            partial(_list_heads, core),
            head_pb2.ListHeadsRequest,
            head_pb2.ListHeadsResponse,
            seconds,
        ),
    ]


async def _predict(
    core: PredictCore, message: head_pb2.PredictRequest, until: Until, client: str
) -> head_pb2.PredictResponse:
    deadline, request = until(), convert.request_of_message(message)
    predicted = await in_time(core.predict(request, deadline, client), deadline)
    return convert.predicted_to_message(predicted, request_id.current())


async def _list_heads(
    core: PredictCore, message: head_pb2.ListHeadsRequest, _until: Until, _client: str
) -> head_pb2.ListHeadsResponse:
    groups = core.groups(message.ring)
    return head_pb2.ListHeadsResponse(rings=map(convert.encoder_group_to_message, groups))
