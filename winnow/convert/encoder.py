"""Between an encoder and its callers: domain values to messages of `encoder.proto` and back.

Half-precision states travel bit for bit. As signed bytes, a value x of a token whose largest value
is M becomes q = round(x / s) with s = M / 127, and is read back as q s. The error is at most s / 2,
less than 0.4 % of M, plus the rounding to half precision (2 ** -11 of the value).
"""

import numpy as np
from numpy.typing import NDArray

from winnow.convert.by_name import same_fields, value_of_message
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.errors import InvalidRequestError, Violation
from winnow.text.encoder import TextEncoding
from winnow.v1 import encoder_pb2

States = NDArray[np.float16]
FORMATS = {
    StatesFormat.NONE: encoder_pb2.STATES_FORMAT_UNSPECIFIED,
    StatesFormat.FLOAT16: encoder_pb2.STATES_FORMAT_FLOAT16,
    StatesFormat.INT8: encoder_pb2.STATES_FORMAT_INT8,
}
_OF_MESSAGE = {number: kind for kind, number in FORMATS.items()}
_STEPS = 127
_BYTES = {StatesFormat.FLOAT16: 2, StatesFormat.INT8: 1}
"""Of a value."""


def format_of_message(number: int, field: str = "states_format") -> StatesFormat:
    """The format that is meant; raises InvalidRequestError that names `field` if there is none."""
    found = _OF_MESSAGE.get(number)  # type: ignore[call-overload]
    if found is None:
        raise InvalidRequestError(Violation(field, f"{number} is not a known value"))
    return StatesFormat(found)


def states_to_message(states: States, kind: StatesFormat) -> encoder_pb2.TokenStates:
    """States [tokens, width] as they travel; `kind` is not NONE."""
    tokens, width = states.shape
    message = encoder_pb2.TokenStates(format=FORMATS[kind], tokens=tokens, width=width)
    if kind is StatesFormat.FLOAT16:
        message.values = states.astype("<f2", copy=False).tobytes()
        return message
    wide = states.astype(np.float32)
    scales = np.abs(wide).max(axis=1, keepdims=True) / _STEPS
    # a token of zeros has a scale of 0, and stays one of zeros
    steps = np.divide(wide, scales, out=np.zeros_like(wide), where=scales > 0)
    message.values = np.rint(steps).clip(-_STEPS, _STEPS).astype(np.int8).tobytes()
    message.scales = scales.astype("<f4").tobytes()
    return message


def states_of_message(message: encoder_pb2.TokenStates) -> States:
    """States as they arrived, float16 [tokens, width]. Raises InvalidRequestError if they are of no
    known format, not as many as they should be, or one of them is not finite.
    """
    kind = format_of_message(message.format, "states.format")
    if kind is StatesFormat.NONE:
        raise InvalidRequestError(Violation("states.format", "say in which format they are"))
    _check_sizes(message, kind)
    shape = (message.tokens, message.width)
    if kind is StatesFormat.FLOAT16:
        states = np.frombuffer(message.values, "<f2").reshape(shape).astype(np.float16, copy=False)
    else:
        steps = np.frombuffer(message.values, np.int8).reshape(shape)
        scales = np.frombuffer(message.scales, "<f4")[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # which is looked at below
            states = (steps * scales).astype(np.float16)
    if not np.isfinite(states).all():
        raise InvalidRequestError(Violation("states", "not every value is finite"))
    return states


def _check_sizes(message: encoder_pb2.TokenStates, kind: StatesFormat) -> None:
    if not message.tokens or not message.width:
        raise InvalidRequestError(Violation("states", "tokens and width must be at least 1"))
    expected = message.tokens * message.width * _BYTES[kind]
    if len(message.values) != expected:
        raise InvalidRequestError(
            Violation(
                "states.values",
                f"{len(message.values)} bytes, but {message.tokens} tokens of {message.width} "
                f"values are {expected} bytes as {kind.value}",
            )
        )
    scales = 4 * message.tokens if kind is StatesFormat.INT8 else 0
    if len(message.scales) != scales:
        raise InvalidRequestError(
            Violation("states.scales", f"{len(message.scales)} bytes, but expected {scales}")
        )


_QUICK = 1 << 16
"""Values that are rounded, or made again, in less than half a millisecond."""


def is_quick(states: States | None, kind: StatesFormat) -> bool:
    """Whether they are converted quickly enough for an event loop; INT8 has to be rounded."""
    return states is None or kind is not StatesFormat.INT8 or states.size <= _QUICK


def is_quick_message(message: encoder_pb2.EncodeResponse) -> bool:
    """The same of states that arrived."""
    return message.states.tokens * message.states.width <= _QUICK


def info_to_message(info: EncoderInfo) -> encoder_pb2.GetEncoderInfoResponse:
    """The description of an encoder."""
    return encoder_pb2.GetEncoderInfoResponse(
        bundle_name=info.bundle, **same_fields(info, ("bundle",))
    )


def info_of_message(message: encoder_pb2.GetEncoderInfoResponse) -> EncoderInfo:
    """The description of an encoder."""
    return value_of_message(EncoderInfo, message, bundle=message.bundle_name)


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
    """An encoding as it arrived. Raises InvalidRequestError if vector or states are none; it names
    the field.
    """
    if len(message.vector) % 4:
        raise InvalidRequestError(
            Violation(
                "vector",
                f"{len(message.vector)} bytes is not a multiple of 4: expected float32 values",
            )
        )
    vector = np.frombuffer(message.vector, "<f4").astype(np.float32, copy=False)
    states = states_of_message(message.states) if message.HasField("states") else None
    return TextEncoding(vector, states, message.queue_ms / 1e3, message.encode_ms / 1e3)
