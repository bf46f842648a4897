"""Converts encodings of texts to messages of `encoder.proto` and back.

FLOAT16 states are sent bit for bit. INT8 states have a scale per token: s = M / 127, where M is the
token's largest absolute value. A value x is sent as q = round(x / s), and read as q * s. The error
is at most s / 2, less than 0.4 % of M, plus the rounding to half precision (2 ** -11 of x).
"""

import numpy as np
from numpy.typing import NDArray

from winnow.convert.arrays import float32_values
from winnow.convert.by_name import same_fields, value_of_message
from winnow.convert.tokens import token_fields, tokens_of_fields
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import invalid_field
from winnow.text.encoder import TextEncoding
from winnow.v1 import encoder_pb2

States = NDArray[np.float16]
FORMATS = {
    StatesFormat.NONE: encoder_pb2.STATES_FORMAT_UNSPECIFIED,
    StatesFormat.FLOAT16: encoder_pb2.STATES_FORMAT_FLOAT16,
    StatesFormat.INT8: encoder_pb2.STATES_FORMAT_INT8,
}
_FORMAT_BY_NUMBER = {number: states_format for states_format, number in FORMATS.items()}
_MAX_STEP = 127
_BYTES_PER_VALUE = {StatesFormat.FLOAT16: 2, StatesFormat.INT8: 1}
"""Bytes per value, by format."""


def format_of_message(number: int, field: str = "states_format") -> StatesFormat:
    """Converts a format; raises InvalidRequestError for `field` if the number is unknown."""
    known_format = _FORMAT_BY_NUMBER.get(number)  # type: ignore[call-overload]
    if known_format is None:
        raise invalid_field(field, f"{number} is not a known value")
    return StatesFormat(known_format)


def states_to_message(states: States, states_format: StatesFormat) -> encoder_pb2.TokenStates:
    """Converts states [tokens, width] to a message; `states_format` must not be NONE."""
    tokens, width = states.shape
    message = encoder_pb2.TokenStates(format=FORMATS[states_format], tokens=tokens, width=width)
    if states_format is StatesFormat.FLOAT16:
        message.values = states.astype("<f2", copy=False).tobytes()
        return message
    values = states.astype(np.float32)
    scales = np.abs(values).max(axis=1, keepdims=True) / _MAX_STEP
    # a token of zeros has scale 0, and its values stay 0
    steps = np.divide(values, scales, out=np.zeros_like(values), where=scales > 0)
    message.values = np.rint(steps).clip(-_MAX_STEP, _MAX_STEP).astype(np.int8).tobytes()
    message.scales = scales.astype("<f4").tobytes()
    return message


def states_of_message(message: encoder_pb2.TokenStates) -> States:
    """Converts a message to states, float16 [tokens, width].

    Raises InvalidRequestError for an unknown format, a wrong size, or a value that is not finite.
    """
    states_format = format_of_message(message.format, "states.format")
    if states_format is StatesFormat.NONE:
        raise invalid_field("states.format", "must be set")
    _check_sizes(message, states_format)
    shape = (message.tokens, message.width)
    if states_format is StatesFormat.FLOAT16:
        states = np.frombuffer(message.values, "<f2").reshape(shape).astype(np.float16, copy=False)
    else:
        steps = np.frombuffer(message.values, np.int8).reshape(shape)
        scales = np.frombuffer(message.scales, "<f4")[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            states = (steps * scales).astype(np.float16)
    if not np.isfinite(states).all():
        raise invalid_field("states", "every value must be finite")
    return states


def _check_sizes(message: encoder_pb2.TokenStates, states_format: StatesFormat) -> None:
    if not message.tokens or not message.width:
        raise invalid_field("states", "tokens and width must be at least 1")
    expected = message.tokens * message.width * _BYTES_PER_VALUE[states_format]
    if len(message.values) != expected:
        raise invalid_field(
            "states.values",
            f"{len(message.values)} bytes, but expected {expected}: {message.tokens} tokens of "
            f"{message.width} values as {states_format.value}",
        )
    scales = 4 * message.tokens if states_format is StatesFormat.INT8 else 0
    if len(message.scales) != scales:
        raise invalid_field("states.scales", f"{len(message.scales)} bytes, but expected {scales}")


_QUICK_VALUES = 1 << 16
"""Maximum number of values whose conversion from or to INT8 takes under half a millisecond."""


def is_cheap_to_convert(states: States | None, states_format: StatesFormat) -> bool:
    """Whether converting states to a message is fast enough for an event loop."""
    return states is None or states_format is not StatesFormat.INT8 or states.size <= _QUICK_VALUES


def is_message_cheap_to_convert(message: encoder_pb2.EncodeResponse) -> bool:
    """Whether converting the states of a message is fast enough for an event loop."""
    return message.states.tokens * message.states.width <= _QUICK_VALUES


def info_to_message(info: EncoderInfo) -> encoder_pb2.GetEncoderInfoResponse:
    return encoder_pb2.GetEncoderInfoResponse(
        bundle_name=info.bundle, **same_fields(info, ("bundle",))
    )


def info_of_message(message: encoder_pb2.GetEncoderInfoResponse) -> EncoderInfo:
    return value_of_message(EncoderInfo, message, bundle=message.bundle_name)


def encoding_to_message(
    encoding: TextEncoding, states_format: StatesFormat
) -> encoder_pb2.EncodeResponse:
    """Converts an encoding to a message, with its states in `states_format`."""
    message = encoder_pb2.EncodeResponse(
        vector=encoding.vector.astype("<f4", copy=False).tobytes(),
        queue_ms=encoding.queue * 1e3,
        encode_ms=encoding.encode * 1e3,
        **token_fields(encoding.tokens),
    )
    if encoding.states is not None and states_format is not StatesFormat.NONE:
        message.states.CopyFrom(states_to_message(encoding.states, states_format))
    return message


def encoding_of_message(message: encoder_pb2.EncodeResponse) -> TextEncoding:
    """Converts a message to an encoding.

    Raises InvalidRequestError, which names the field, if an array is invalid.
    """
    vector = float32_values(message.vector, "vector")
    states = states_of_message(message.states) if message.HasField("states") else None
    tokens = tokens_of_fields(message.token_levels, message.token_weights)
    queue, encode = message.queue_ms / 1e3, message.encode_ms / 1e3
    return TextEncoding(vector, states, queue, encode, tokens=tokens)
