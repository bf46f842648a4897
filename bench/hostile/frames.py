"""Frames of HTTP/2 as bytes, enough to misuse the protocol. Pure.

The names of RFC 9113 (frames) and RFC 7541 (header fields, here without compression).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = 0x1
END_HEADERS = 0x4
INITIAL_WINDOW = 65_535
HEAD = 9
"""Bytes of a frame's head."""
_INITIAL_WINDOW_SIZE = 4
"""The setting's number."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a frame."""

    length: int
    kind: int
    flags: int
    stream: int


def frame(kind: int, stream: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    """Returns a frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + _four(stream) + payload


def head(data: bytes) -> Head:
    """Parses the nine bytes of a head."""
    stream = int.from_bytes(data[5:], "big") & 0x7FFFFFFF
    return Head(int.from_bytes(data[:3], "big"), data[3], data[4], stream)


def fields(values: Mapping[str, str]) -> bytes:
    """Returns header fields as literals with new names, each shorter than 127 bytes."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in values.items())


def call(stream: int, path: str) -> bytes:
    """Returns the frame that begins a gRPC call."""
    values = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return frame(HEADERS, stream, fields(values), END_HEADERS)


def message_head(length: int) -> bytes:
    """Returns the prefix of a gRPC message of `length` bytes."""
    return b"\0" + _four(length)


def window_sizes(payload: bytes) -> Iterator[int]:
    """Yields the sizes of a new stream's window in a SETTINGS frame."""
    for at in range(0, len(payload) - 5, 6):
        if int.from_bytes(payload[at : at + 2], "big") == _INITIAL_WINDOW_SIZE:
            yield int.from_bytes(payload[at + 2 : at + 6], "big")


def _four(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode("ascii")
