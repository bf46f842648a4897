"""The heads of one head server, over `winnow.v1.HeadNodeService`."""

from collections.abc import Sequence

import grpc

from winnow.convert import head_node as convert
from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.errors import UnavailableError, WinnowError
from winnow.heads.heads import States
from winnow.rpc import handing_on
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import until_replied
from winnow.rpc.status import error_of_node
from winnow.telemetry.tracing.span import SpanKind, span
from winnow.v1 import head_node_pb2_grpc

SERVICE = "winnow.v1.HeadNodeService"


class RemoteHeads:
    """Calls a head server. A caller that is cancelled ends its call, and so the server's work."""

    def __init__(self, channel: grpc.aio.Channel, address: str, fingerprint: str) -> None:
        """`fingerprint`: of the encoder that makes the states; `address` is for errors."""
        self._stub = head_node_pb2_grpc.HeadNodeServiceStub(channel)
        self._channel, self.address, self._fingerprint = channel, address, fingerprint

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies the heads, as `Heads.apply` does; but raises if the call itself fails.

        Raises:
            WinnowError: the server cannot be reached, refuses, or answers something else.

        """
        request = convert.request_to_message(states, head_ids, self._fingerprint)
        try:
            with span("ask heads", {"server.address": self.address}, SpanKind.CLIENT):
                metadata = handing_on.outgoing(client)
                call = self._stub.Apply(request, timeout=timeout(deadline), metadata=metadata)
                reply = await until_replied(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, f"the head server {self.address}") from error
        found = [convert.applied_of_message(each) for each in reply.heads]
        if [each.head for each in found] != list(head_ids):
            wrong = UnavailableError(f"the head server {self.address} answered for other heads")
            raise wrong.with_public("a head server answered for other heads")
        return found

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies each head; if the call fails, so does each of them."""
        try:
            return await self.call(states, head_ids, deadline, client)
        except WinnowError as error:
            return [Applied(each, 0, failure=error) for each in head_ids]

    async def close(self) -> None:
        """Closes the channel; calls in hand are cancelled."""
        await self._channel.close()
