"""Makes an inner value of a model an output, too.

The file and its checksums stay as they are. Two serialised messages, one after the other, are one
message with the repeated fields of both (protobuf's encoding, "Last One Wins"). So a further output
is a few bytes at the end.
"""

_GRAPH = 7
"""Field of ONNX' ModelProto; https://github.com/onnx/onnx/blob/main/onnx/onnx.proto"""
_OUTPUT = 12
"""Field of GraphProto: a ValueInfoProto."""
_NAME = 1
"""Field of ValueInfoProto. Its type is left to the runtime, which knows it."""


def with_output(model: bytes, name: str) -> bytes:
    """A serialised ONNX model with the inner value `name` among its outputs, after the others."""
    return model + _field(_GRAPH, _field(_OUTPUT, _field(_NAME, name.encode())))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    rest, digit = divmod(number, 128)
    return bytes([digit | 128]) + _varint(rest) if rest else bytes([digit])
