"""An HTTP/2 client that can send incomplete messages, which no client library can."""

import asyncio
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 0, 1, 3, 4, 9
END_STREAM, END_HEADERS = 1, 4
_WINDOW = 4
STREAM = 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def call(method: str, flags: int = END_HEADERS, stream: int = STREAM, extra: bytes = b"") -> bytes:
    """The headers of a call of a method, such as `/winnow.v1.AnswerService/Answer`, and more."""
    pairs = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", method),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    )
    return frame(HEADERS, flags, stream, b"".join(header(*pair) for pair in pairs) + extra)


def header(name: str, value: str) -> bytes:
    """A header as HPACK writes it without any compression."""
    return b"\0" + _text(name) + _text(value)


def whole(message: bytes) -> bytes:
    """A message, and the end of what is sent."""
    return frame(DATA, END_STREAM, STREAM, b"\0" + struct.pack("!I", len(message)) + message)


def half_of(size: int) -> bytes:
    """The beginning of a message of `size` bytes: as much as may be sent unasked."""
    data = b"\0" + struct.pack("!I", size) + b"a" * min(size - 1, 60_000)
    pieces = [data[at : at + 16_384] for at in range(0, len(data), 16_384)]
    return b"".join(frame(DATA, 0, STREAM, piece) for piece in pieces)


class Peer:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int, window: int = 65_535) -> "Peer":
        """To a server of this machine, which may send `window` bytes of each reply unasked."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        peer = cls(reader, writer)
        await peer.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack("!HI", _WINDOW, window)))
        return peer

    async def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def ended(self) -> bytes:
        """Waits for the server to end the call; the headers that it sent."""
        headers = b""
        while True:
            kind, flags, payload = await self._frame()
            if kind == HEADERS:
                headers += payload
                if flags & END_STREAM:
                    return headers

    async def begun(self) -> None:
        """Waits for the first headers of the reply."""
        while (await self._frame())[0] != HEADERS:
            pass

    async def closed(self) -> None:
        """Waits for the server to close the connection."""
        while await self._reader.read(65_536):
            pass

    async def close(self) -> None:
        """Ends the connection."""
        self._writer.close()
        await self._writer.wait_closed()

    async def _frame(self) -> tuple[int, int, bytes]:
        head = await self._reader.readexactly(9)
        return head[3], head[4], await self._reader.readexactly(int.from_bytes(head[:3], "big"))


def _text(value: str) -> bytes:
    data = value.encode()
    length = bytes([len(data)]) if len(data) < 127 else bytes([127, len(data) - 127])
    return length + data
