"""Encoding on a server, as a `TextEncoder` over `winnow.v1.EncoderService`."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import grpc

from winnow.convert import encoder as convert
from winnow.convert.encoder import FORMATS
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import IdentityError, InvalidRequestError, UnavailableError
from winnow.rpc import handing_on
from winnow.rpc.replying import until_replied
from winnow.rpc.status import error_of_node
from winnow.telemetry.tracing.span import SpanKind, span
from winnow.text.encoder import TextEncoding, Then
from winnow.v1 import encoder_pb2, encoder_pb2_grpc

SERVICE = "winnow.v1.EncoderService"
_SPECIAL = 2


class RemoteTextEncoder:
    """Has texts encoded by a server, or by several that a channel chooses from.

    It keeps nothing: wrap it in a `CachedTextEncoder`. A caller that is cancelled ends its call,
    and so the work of the server.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: str,
        fingerprint: str,
        states: StatesFormat = StatesFormat.FLOAT16,
        timeout: float = 2.0,
        patience: float = 60.0,
    ) -> None:
        """Calls nobody yet.

        Args:
            channel: see `winnow.rpc.channel.open_balanced`; whoever opened it closes it.
            address: of the server, for errors.
            fingerprint: of the encoder that is meant (`Manifest.states_fingerprint`).
            states: whether token states are wanted, and how they travel. As INT8 they are rounded.
            timeout: seconds that a text may take; callers with less time cancel.
            patience: seconds that `warm_up` waits for a server.

        """
        self._stub = encoder_pb2_grpc.EncoderServiceStub(channel)
        self._address, self._fingerprint, self._states = address, fingerprint, states
        self._timeout, self._patience = timeout, patience
        self._in_hand: set[grpc.aio.Call] = set()

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        """Encodes on the server, in the turn of `client`.

        What it waited includes the time on the way.

        Raises:
            WinnowError: as the server says; UnavailableError, too, if it takes too long, or what it
                sent is no encoding.

        """
        started = time.perf_counter()
        with span("ask encoder", {"server.address": self._address}, SpanKind.CLIENT):
            reply = await self._reply(ids, client)
        encoding = await self._checked(reply, len(ids))
        elapsed = time.perf_counter() - started
        return replace(encoding, queue=max(elapsed - encoding.encode, 0.0))

    async def info(self) -> EncoderInfo:
        """Which encoder is there; waits for the server if need be."""
        request = encoder_pb2.GetEncoderInfoRequest()
        try:
            reply = await self._stub.GetEncoderInfo(
                request, timeout=self._patience, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            raise UnavailableError(
                f"no encoder at {self._address} within {self._patience:g} s: {error.details()}"
            ) from error
        return convert.info_of_message(reply)

    async def warm_up(self, longest: int) -> None:
        """Waits for the server, and looks whether it is the right one.

        Raises:
            UnavailableError: it does not come.
            IdentityError: it has another encoder, gives no states though they are wanted, or takes
                fewer than `longest` tokens.

        """
        info = await self.info()
        if info.fingerprint != self._fingerprint:
            raise IdentityError(
                f"the encoder at {self._address} is {info.fingerprint} of bundle {info.bundle}, "
                f"expected {self._fingerprint}: give both the same bundle"
            )
        if self._states is not StatesFormat.NONE and not info.width:
            raise IdentityError(f"the encoder at {self._address} gives no token states")
        if longest > info.max_tokens:
            raise IdentityError(
                f"the encoder at {self._address} takes {info.max_tokens} tokens, not {longest}"
            )

    def close(self) -> None:
        """Ends calls in hand; whoever waits is cancelled."""
        for call in list(self._in_hand):
            call.cancel()

    async def _reply(self, ids: Sequence[int], client: str) -> encoder_pb2.EncodeResponse:
        request = encoder_pb2.EncodeRequest(
            token_ids=ids, fingerprint=self._fingerprint, states_format=FORMATS[self._states]
        )
        metadata = handing_on.outgoing(client)
        call = self._stub.Encode(request, timeout=self._timeout, metadata=metadata)
        self._in_hand.add(call)
        try:
            return await until_replied(call)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:  # ours, not that of our caller
                raise self._unavailable(f"did not answer within {self._timeout:g} s") from error
            raise error_of_node(error, f"the encoder at {self._address}") from error
        finally:
            self._in_hand.discard(call)

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
