"""Adds an inner value of a model to its outputs.

The file and its checksums do not change. Two serialised messages, one after the other, are one
message with the repeated fields of both (protobuf's encoding, "Last One Wins"). So a further output
is a few bytes at the end.
"""

_GRAPH = 7
"""Field of ONNX' ModelProto; https://github.com/onnx/onnx/blob/main/onnx/onnx.proto"""
_OUTPUT = 12
"""Field of GraphProto: a ValueInfoProto."""
_NAME = 1
"""Field of ValueInfoProto. The type is not set, because the runtime infers it."""


def with_output(model: bytes, name: str) -> bytes:
    """Returns a serialised ONNX model with the inner value `name` as its last output."""
    return model + _field(_GRAPH, _field(_OUTPUT, _field(_NAME, name.encode())))


def _field(number: int, content: bytes) -> bytes:
    """Encodes a length-delimited field of protobuf."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    rest, digit = divmod(number, 128)
    return bytes([digit | 128]) + _varint(rest) if rest else bytes([digit])
