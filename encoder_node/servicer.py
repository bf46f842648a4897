"""Implements `winnow.v1.EncoderService`."""

import asyncio
from dataclasses import replace
from typing import Any

from winnow.convert import encoder as convert
from winnow.convert.encoder import format_of_message
from winnow.domain.encoder import EncoderInfo
from winnow.encoder_node.admission import AdmittedEncoder
from winnow.encoder_node.validation import check_fingerprint, check_ids, check_states
from winnow.errors import UnavailableError
from winnow.rpc.client_key import client_of
from winnow.rpc.deadline import deadline_of
from winnow.v1 import encoder_pb2, encoder_pb2_grpc

SERVICE = "winnow.v1.EncoderService"


class EncoderServicer(encoder_pb2_grpc.EncoderServiceServicer):
    """Serves an encoder; refuses calls until `set_encoder`."""

    def __init__(self, info: EncoderInfo, vocabulary: int, default_deadline: float) -> None:
        """`vocabulary`: number of token ids; `default_deadline`: seconds, for calls without one."""
        self._info, self._vocabulary = info, vocabulary
        self._default_deadline = default_deadline
        self._encoder: AdmittedEncoder | None = None

    def set_encoder(self, encoder: AdmittedEncoder) -> None:
        """Sets the encoder that is served."""
        self._encoder = encoder

    async def GetEncoderInfo(  # noqa: N802
        self, request: encoder_pb2.GetEncoderInfoRequest, context: Any
    ) -> encoder_pb2.GetEncoderInfoResponse:
        return convert.info_to_message(self._info)

    async def Encode(  # noqa: N802
        self, request: encoder_pb2.EncodeRequest, context: Any
    ) -> encoder_pb2.EncodeResponse:
        states_format = format_of_message(request.states_format)
        check_fingerprint(request.fingerprint, self._info)
        check_states(states_format, self._info)
        check_ids(request.token_ids, self._info.max_tokens, self._vocabulary)
        if self._encoder is None:
            raise UnavailableError("the encoder is still loading")
        deadline = deadline_of(context, self._default_deadline)
        client = client_of(context)
        encoding = await self._encoder.encode(tuple(request.token_ids), deadline, client)
        if not request.token_vectors or request.token_vectors != self._info.token_vectors:
            encoding = replace(encoding, tokens=None)
        if convert.is_cheap_to_convert(encoding.states, states_format):
            return convert.encoding_to_message(encoding, states_format)
        return await asyncio.to_thread(convert.encoding_to_message, encoding, states_format)
