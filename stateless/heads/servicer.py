"""Serves `winnow.v1.HeadService`: converts requests, calls the predict core, converts results."""

from typing import Any

from winnow.convert import head as convert
from winnow.rpc import request_id
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.stateless.heads.core import PredictCore
from winnow.v1 import head_pb2, head_pb2_grpc

SERVICE = "winnow.v1.HeadService"
MAX_MESSAGE_BYTES = 160 * 1024
"""Maximum size of a message, in bytes: 16 texts of 2000 characters of 4 bytes, and 32 head ids."""
MAX_PENDING_BYTES = 256 * MAX_MESSAGE_BYTES
"""Maximum size of all messages that are being received, in bytes. Most messages are questions."""


class HeadServicer(head_pb2_grpc.HeadServiceServicer):
    """Serves the predict core over gRPC."""

    def __init__(self, core: PredictCore, default_deadline: float) -> None:
        """`default_deadline`: deadline in seconds of a call whose caller sets none."""
        self._core, self._default_deadline = core, default_deadline

    async def Predict(  # noqa: N802
        self, request: head_pb2.PredictRequest, context: Any
    ) -> head_pb2.PredictResponse:
        predicted = await self._core.predict(
            convert.request_of_message(request),
            deadline_of(context, self._default_deadline),
            client_of(context),
        )
        return convert.predicted_to_message(predicted, request_id.current())

    async def ListHeads(  # noqa: N802
        self, request: head_pb2.ListHeadsRequest, context: Any
    ) -> head_pb2.ListHeadsResponse:
        groups = self._core.groups(request.ring)
        return head_pb2.ListHeadsResponse(rings=map(convert.encoder_group_to_message, groups))
