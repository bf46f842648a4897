"""A client of an encoder node, over `winnow.v1.EncoderService`."""

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
from winnow.text.encoder import SPECIAL_TOKENS, TextEncoding
from winnow.v1 import encoder_pb2, encoder_pb2_grpc

SERVICE = "winnow.v1.EncoderService"
_READINESS = {
    grpc.ChannelConnectivity.READY: 2,
    grpc.ChannelConnectivity.CONNECTING: 1,
    grpc.ChannelConnectivity.IDLE: 1,
}


class RemoteEncoder:
    """A client of one encoder node. Cancelling a call also stops the node's work."""

    def __init__(
        self,
        address: str,
        fingerprint: str,
        states: StatesFormat,
        peers: PeerChannels = PLAIN_TEXT,
        *,
        token_vectors: str = "",
    ) -> None:
        """Starts connecting.

        Args:
            address: HOST:PORT of the node.
            fingerprint: of the expected encoder (`Manifest.states_fingerprint`).
            states: wire format of token states, or NONE. INT8 rounds them.
            peers: TLS and credentials for calls to encoder nodes.
            token_vectors: fingerprint of the expected token vectors; empty for none. A node that
                lacks them returns none.

        """
        # the channel avoids nodes that report NOT_SERVING; the caller chooses another one
        self._channel = open_balanced(address, SERVICE, peers)
        self._channel.get_state(try_to_connect=True)
        self._stub = encoder_pb2_grpc.EncoderServiceStub(self._channel)
        self._address, self._fingerprint, self._states = address, fingerprint, states
        self._token_vectors = token_vectors

    @property
    def readiness(self) -> int:
        """2 if connected to a node that reports SERVING, 1 while connecting, otherwise 0."""
        return _READINESS.get(self._channel.get_state(try_to_connect=True), 0)

    async def encode(self, ids: Sequence[int], client: str, deadline: Deadline) -> TextEncoding:
        """Encodes a text on the node, which shares its time fairly among clients.

        Raises the node's WinnowError, or UnavailableError if the reply is invalid.
        """
        request = encoder_pb2.EncodeRequest(
            token_ids=ids,
            fingerprint=self._fingerprint,
            states_format=FORMATS[self._states],
            token_vectors=self._token_vectors,
        )
        metadata = call_metadata.build(client)
        try:
            call = self._stub.Encode(request, timeout=timeout(deadline), metadata=metadata)
            reply = await reply_of(call)
        except grpc.aio.AioRpcError as error:
            raise error_of_node(error, f"the encoder at {self._address}") from error
        return await self._decode(reply, len(ids))

    async def info(self, seconds: float) -> EncoderInfo:
        """Returns the description of the node's encoder; waits up to `seconds` for the node."""
        request = encoder_pb2.GetEncoderInfoRequest()
        try:
            reply = await self._stub.GetEncoderInfo(request, timeout=seconds, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(
                f"no encoder at {self._address} within {seconds:.3g} s: {error.details()}"
            ) from error
        return convert.info_of_message(reply)

    async def close(self) -> None:
        """Closes the channel, which cancels calls in flight."""
        await self._channel.close()

    async def _decode(self, reply: encoder_pb2.EncodeResponse, tokens: int) -> TextEncoding:
        try:
            if convert.is_message_cheap_to_convert(reply):
                encoding = convert.encoding_of_message(reply)
            else:
                encoding = await asyncio.to_thread(convert.encoding_of_message, reply)
        except InvalidRequestError as error:  # the fault of the node, not of our caller
            raise self._bad_reply(f"sent an invalid encoding: {error}") from error
        states, expects_states = encoding.states, self._states is not StatesFormat.NONE
        if (states is not None) != expects_states or (
            states is not None and len(states) != tokens + SPECIAL_TOKENS
        ):
            raise self._bad_reply("sent token states that do not fit the request")
        if encoding.tokens is not None and len(encoding.tokens.levels) != tokens + SPECIAL_TOKENS:
            raise self._bad_reply("sent token vectors that do not fit the request")
        return encoding

    def _bad_reply(self, problem: str) -> UnavailableError:
        error = UnavailableError(f"the encoder at {self._address} {problem}")
        return error.with_public(f"the encoder {problem}")
