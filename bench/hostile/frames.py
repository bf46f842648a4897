"""Encodes and parses single HTTP/2 frames, for clients that violate the protocol.

The names come from RFC 9113 (frames) and RFC 7541 (header fields, here without compression).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = 0x1
END_HEADERS = 0x4
INITIAL_WINDOW = 65_535
HEADER_BYTES = 9
"""Length of a frame's header."""
_INITIAL_WINDOW_SIZE = 4
"""Identifier of the setting SETTINGS_INITIAL_WINDOW_SIZE."""


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The header of a frame."""

    length: int
    kind: int
    flags: int
    stream: int


def frame(kind: int, stream: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    """Encodes a frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + _four_bytes(stream) + payload


def parse_header(data: bytes) -> FrameHeader:
    """Parses the nine bytes of a frame's header."""
    stream = int.from_bytes(data[5:], "big") & 0x7FFFFFFF
    return FrameHeader(int.from_bytes(data[:3], "big"), data[3], data[4], stream)


def header_fields(values: Mapping[str, str]) -> bytes:
    """Encodes header fields as literals with new names.

    Names and values have at most 126 bytes.
    """
    return b"".join(
        b"\0" + _short_string(name) + _short_string(value) for name, value in values.items()
    )


def call_headers(stream: int, path: str) -> bytes:
    """Encodes the HEADERS frame that starts a gRPC call."""
    values = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return frame(HEADERS, stream, header_fields(values), END_HEADERS)


def message_prefix(length: int) -> bytes:
    """Encodes the prefix of a gRPC message of `length` bytes."""
    return b"\0" + _four_bytes(length)


def window_sizes(payload: bytes) -> Iterator[int]:
    """Yields each initial window size in the payload of a SETTINGS frame."""
    for position in range(0, len(payload) - 5, 6):
        if int.from_bytes(payload[position : position + 2], "big") == _INITIAL_WINDOW_SIZE:
            yield int.from_bytes(payload[position + 2 : position + 6], "big")


def _four_bytes(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _short_string(value: str) -> bytes:
    return bytes((len(value),)) + value.encode("ascii")
