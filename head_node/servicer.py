"""Implements `winnow.v1.HeadNodeService`."""

from dataclasses import dataclass
from typing import Any

from winnow.convert import head_node as convert
from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.head_node.validation import check_encoder, check_heads
from winnow.heads.admission import TextAdmission
from winnow.heads.heads import Heads
from winnow.heads.manifest import EncoderEntry
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.rpc.server import KIB
from winnow.telemetry.tracing.span import span
from winnow.v1 import head_node_pb2, head_node_pb2_grpc

SERVICE = "winnow.v1.HeadNodeService"
MAX_MESSAGE_BYTES = 1_040 * KIB
"""Limit of bytes of a message: 512 token states of 1 024 values in half precision."""
MAX_PENDING_BYTES = 128 * MAX_MESSAGE_BYTES
"""Limit of bytes of all messages being received: a burst of 128 texts."""
_REPLY_SHARE, _MAX_REPLY_SECONDS = 0.1, 0.02
"""Share of the remaining time, and limit in seconds, that is reserved for the reply. Without a
reserve, one late head would make the whole call late."""


@dataclass(frozen=True, slots=True)
class EncoderHeads:
    """The served heads, and the encoder that they were trained on."""

    encoder: EncoderEntry
    heads: Heads


class HeadNodeServicer(head_node_pb2_grpc.HeadNodeServiceServicer):
    """Serves heads; refuses calls until `set_heads`."""

    def __init__(self, admission: TextAdmission, default_deadline: float) -> None:
        self._admission, self._default_deadline = admission, default_deadline
        self._group: EncoderHeads | None = None

    def set_heads(self, group: EncoderHeads) -> None:
        """Sets the heads that are served."""
        self._group = group

    async def Apply(  # noqa: N802
        self, request: head_node_pb2.ApplyRequest, context: Any
    ) -> head_node_pb2.ApplyResponse:
        if self._group is None:
            raise UnavailableError("the heads are still loading")
        check_encoder(request.encoder_fingerprint, self._group.encoder)
        heads = check_heads(request.head_ids)
        states = convert.states_of_request(request)
        deadline = deadline_of(context, self._default_deadline)
        client = client_of(context)
        with self._admission.enter(1, client), span("heads", {"winnow.heads": len(heads)}):
            applied = await self._group.heads.apply(
                states, heads, _deadline_of_heads(deadline), client
            )
        return head_node_pb2.ApplyResponse(heads=map(convert.applied_to_message, applied))


def _deadline_of_heads(deadline: Deadline) -> Deadline:
    return deadline.earlier(max(min(_MAX_REPLY_SECONDS, deadline.left() * _REPLY_SHARE), 0.0))
