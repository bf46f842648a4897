"""`winnow.v1.HeadNodeService`: convert, call, convert."""

from dataclasses import dataclass
from typing import Any

from winnow.convert import head_node as convert
from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.head_node.validation import check_encoder, check_heads
from winnow.heads.admission import TextAdmission
from winnow.heads.heads import Heads
from winnow.heads.manifest import EncoderEntry
from winnow.rpc import client_key
from winnow.rpc.deadline import deadline_of
from winnow.rpc.server import KIB
from winnow.telemetry.tracing.span import span
from winnow.v1 import head_node_pb2, head_node_pb2_grpc

SERVICE = "winnow.v1.HeadNodeService"
LARGEST = 1_040 * KIB
"""Bytes of a message: 512 token states of 1 024 values in half precision."""
ARRIVING = 128 * LARGEST
"""Bytes of messages on their way: a burst of 128 texts."""
_RESERVED, _LONGEST_RESERVE = 0.1, 0.02
"""Share of the time left, and seconds at most, that heads leave for the way back: or one late head
would lose what all others said."""


@dataclass(frozen=True, slots=True)
class EncoderHeads:
    """The heads that are served, and the encoder that they need."""

    encoder: EncoderEntry
    heads: Heads


class HeadNodeServicer(head_node_pb2_grpc.HeadNodeServiceServicer):
    """Serves heads, once they are there."""

    def __init__(self, admission: TextAdmission, default_deadline: float) -> None:
        self._admission, self._default_deadline = admission, default_deadline
        self._group: EncoderHeads | None = None

    def serve(self, group: EncoderHeads) -> None:
        """From now on heads of `group` are applied."""
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
        client = client_key.of_metadata(context.invocation_metadata())
        with self._admission.enter(1, client), span("heads", {"winnow.heads": len(heads)}):
            applied = await self._group.heads.apply(states, heads, _for_heads(deadline), client)
        return head_node_pb2.ApplyResponse(heads=map(convert.applied_to_message, applied))


def _for_heads(deadline: Deadline) -> Deadline:
    return deadline.earlier(max(min(_LONGEST_RESERVE, deadline.left() * _RESERVED), 0.0))
