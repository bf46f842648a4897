"""Extends a model: adds an inner tensor to its outputs, or nodes that use inner tensors.

Only the bytes in memory change, so the file keeps its checksum. Concatenated serialised messages
are one message with the repeated fields of both (protobuf's encoding, "Last One Wins"). So another
output is a few bytes at the end, and so are other nodes.
"""

_GRAPH = 7
"""Field of ONNX' ModelProto; https://github.com/onnx/onnx/blob/main/onnx/onnx.proto"""
_OUTPUT = 12
"""Field of GraphProto: a ValueInfoProto."""
_NAME = 1
"""Field of ValueInfoProto. Its type field is not set, because the runtime infers the type."""


def extension_with_output(name: str) -> bytes:
    """Returns bytes that, appended to a serialised ONNX model, add the inner tensor `name` to its
    outputs. Empty for an empty name.
    """
    return (
        _proto_field(_GRAPH, _proto_field(_OUTPUT, _proto_field(_NAME, name.encode())))
        if name
        else b""
    )


def _proto_field(number: int, content: bytes) -> bytes:
    """Encodes a length-delimited protobuf field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    rest, digit = divmod(number, 128)
    return bytes([digit | 128]) + _varint(rest) if rest else bytes([digit])
