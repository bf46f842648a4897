"""Clients of head servers, over `winnow.v1.HeadNodeService`."""

from collections.abc import Sequence

import grpc

from winnow.convert import head_node as convert
from winnow.deadline import Deadline
from winnow.domain.prediction import Applied
from winnow.errors import UnavailableError
from winnow.heads.heads import States
from winnow.heads.placed import PlacedHeads
from winnow.rpc import call_metadata
from winnow.rpc.channel import open_balanced
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.v1 import head_node_pb2_grpc

SERVICE = "winnow.v1.HeadNodeService"


class RemoteHeads:
    """A client of one head server. Cancelling a call also stops the work on the server."""

    def __init__(self, channel: grpc.aio.Channel, address: str, fingerprint: str) -> None:
        """`address`: for error messages; `fingerprint`: identifies the encoder of the states."""
        self._stub = head_node_pb2_grpc.HeadNodeServiceStub(channel)
        self._channel, self.address, self._fingerprint = channel, address, fingerprint

    async def call(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads to a text; see `Heads.apply`.

        Raises WinnowError if the server cannot be reached, refuses the call, or replies with other
        heads than requested.
        """
        request = convert.request_to_message(states, head_ids, self._fingerprint)
        metadata = call_metadata.build(client)
        try:
            call = self._stub.Apply(request, timeout=timeout(deadline), metadata=metadata)
            reply = await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, f"the head server {self.address}") from error
        applied = [convert.applied_of_message(each) for each in reply.heads]
        if [each.head for each in applied] != list(head_ids):
            wrong = UnavailableError(
                f"the head server {self.address} replied with other heads than requested"
            )
            raise wrong.with_public("a head server replied with other heads than requested")
        return applied

    async def close(self) -> None:
        """Closes the channel, which cancels calls in flight."""
        await self._channel.close()


def placed_heads(fingerprint: str, peers: PeerChannels = PLAIN_TEXT) -> PlacedHeads:
    """Returns the heads of an encoder group on head servers; call `update` to set the servers.

    Args:
        fingerprint: identifies the encoder of the states (`Manifest.states_fingerprint`).
        peers: TLS and credentials for calls to head servers.

    """

    def open_server(address: str) -> RemoteHeads:
        # the channel avoids servers that report NOT_SERVING; the pool chooses another one
        channel = open_balanced(address, SERVICE, peers=peers)
        return RemoteHeads(channel, address, fingerprint)

    return PlacedHeads(open_server)
