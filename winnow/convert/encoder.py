"""Between an encoder and its callers: domain values to messages of `encoder.proto` and back."""

import numpy as np

from winnow.convert.states import States, states_of_message, states_to_message
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import InvalidRequestError, Violation
from winnow.text.encoder import TextEncoding
from winnow.v1 import encoder_pb2

_QUICK = 1 << 16
"""Values that are rounded, or made again, in less than half a millisecond."""


def is_quick(states: States | None, kind: StatesFormat) -> bool:
    """Whether they are converted quickly enough for an event loop; INT8 has to be rounded."""
    return states is None or kind is not StatesFormat.INT8 or states.size <= _QUICK


def is_quick_message(message: encoder_pb2.EncodeResponse) -> bool:
    """The same of states that arrived."""
    return message.states.tokens * message.states.width <= _QUICK


def info_to_message(info: EncoderInfo) -> encoder_pb2.GetEncoderInfoResponse:
    """What an encoder says of itself."""
    return encoder_pb2.GetEncoderInfoResponse(
        bundle_name=info.bundle,
        fingerprint=info.fingerprint,
        dimension=info.dimension,
        width=info.width,
        max_tokens=info.max_tokens,
    )


def info_of_message(message: encoder_pb2.GetEncoderInfoResponse) -> EncoderInfo:
    """What an encoder says of itself."""
    return EncoderInfo(
        message.bundle_name,
        message.fingerprint,
        message.dimension,
        message.width,
        message.max_tokens,
    )


def encoding_to_message(encoding: TextEncoding, kind: StatesFormat) -> encoder_pb2.EncodeResponse:
    """An encoding as it travels, its states as `kind` says."""
    message = encoder_pb2.EncodeResponse(
        vector=encoding.vector.astype("<f4", copy=False).tobytes(),
        queue_ms=encoding.queue * 1e3,
        encode_ms=encoding.encode * 1e3,
    )
    if encoding.states is not None and kind is not StatesFormat.NONE:
        message.states.CopyFrom(states_to_message(encoding.states, kind))
    return message


def encoding_of_message(message: encoder_pb2.EncodeResponse) -> TextEncoding:
    """An encoding as it arrived.

    Raises:
        InvalidRequestError: vector or states are none; it names the field.

    """
    if len(message.vector) % 4:
        raise InvalidRequestError(
            Violation("vector", f"{len(message.vector)} bytes are no float32 values")
        )
    vector = np.frombuffer(message.vector, "<f4").astype(np.float32, copy=False)
    states = states_of_message(message.states) if message.HasField("states") else None
    return TextEncoding(vector, states, message.queue_ms / 1e3, message.encode_ms / 1e3)
