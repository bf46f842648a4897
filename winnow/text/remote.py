"""Encoding on encoder nodes, over `winnow.v1.EncoderService`."""

import asyncio
from collections.abc import Sequence

import grpc

from winnow.convert import encoder as convert
from winnow.convert.encoder import FORMATS
from winnow.deadline import Deadline
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import InvalidRequestError, UnavailableError
from winnow.rpc import call_metadata
from winnow.rpc.channel import open_balanced
from winnow.rpc.deadline import timeout
from winnow.rpc.replying import reply_of
from winnow.rpc.status import error_of_node
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.text.encoder import TextEncoding
from winnow.v1 import encoder_pb2, encoder_pb2_grpc

SERVICE = "winnow.v1.EncoderService"
_SPECIAL = 2
_READINESS = {
    grpc.ChannelConnectivity.READY: 2,
    grpc.ChannelConnectivity.CONNECTING: 1,
    grpc.ChannelConnectivity.IDLE: 1,
}


class RemoteEncoder:
    """Calls one encoder node. A caller that is cancelled ends its call, and the node's work."""

    def __init__(
        self, address: str, fingerprint: str, states: StatesFormat, peers: PeerChannels = PLAIN_TEXT
    ) -> None:
        """Begins to connect.

        Args:
            address: of the node, as HOST:PORT.
            fingerprint: of the encoder that is meant (`Manifest.states_fingerprint`).
            states: whether token states are wanted, and how they travel. As INT8 they are rounded.
            peers: how encoder nodes are called.

        """
        # a node that says NOT_SERVING gets no calls; the caller decides where else to try
        self._channel = open_balanced(address, SERVICE, peers)
        self._channel.get_state(try_to_connect=True)
        self._stub = encoder_pb2_grpc.EncoderServiceStub(self._channel)
        self._address, self._fingerprint, self._states = address, fingerprint, states

    @property
    def readiness(self) -> int:
        """2 if it is connected and the node says that it serves, 1 while it connects, else 0."""
        return _READINESS.get(self._channel.get_state(try_to_connect=True), 0)

    async def encode(self, ids: Sequence[int], client: str, deadline: Deadline) -> TextEncoding:
        """Encodes on the node, in the turn of `client`.

        Raises:
            WinnowError: as the node says; UnavailableError, too, if it sent what is no encoding.

        """
        request = encoder_pb2.EncodeRequest(
            token_ids=ids, fingerprint=self._fingerprint, states_format=FORMATS[self._states]
        )
        metadata = call_metadata.build(client)
        try:
            call = self._stub.Encode(request, timeout=timeout(deadline), metadata=metadata)
            reply = await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, f"the encoder at {self._address}") from error
        return await self._checked(reply, len(ids))

    async def info(self, seconds: float) -> EncoderInfo:
        """Which encoder is there; waits for the node if need be."""
        request = encoder_pb2.GetEncoderInfoRequest()
        try:
            reply = await self._stub.GetEncoderInfo(request, timeout=seconds, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(
                f"no encoder at {self._address} within {seconds:.3g} s: {error.details()}"
            ) from error
        return convert.info_of_message(reply)

    async def close(self) -> None:
        """Closes the channel; calls in hand are cancelled."""
        await self._channel.close()

    async def _checked(self, reply: encoder_pb2.EncodeResponse, tokens: int) -> TextEncoding:
        try:
            if convert.is_quick_message(reply):
                encoding = convert.encoding_of_message(reply)
            else:
                encoding = await asyncio.to_thread(convert.encoding_of_message, reply)
        except InvalidRequestError as error:  # it is not our caller's fault
            raise self._unavailable(f"sent nonsense: {error}") from error
        states, wanted = encoding.states, self._states is not StatesFormat.NONE
        if (states is not None) != wanted or (
            states is not None and len(states) != tokens + _SPECIAL
        ):
            raise self._unavailable("sent states of another text, or none")
        return encoding

    def _unavailable(self, what: str) -> UnavailableError:
        error = UnavailableError(f"the encoder at {self._address} {what}")
        return error.with_public(f"the encoder {what}")
