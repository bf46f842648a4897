"""A TCP proxy that delays every byte that a node sends."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

_CHUNK = 1 << 16


class Proxy:
    """Forwards connections to a TCP server, and delays its replies."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.target = ""
        """HOST:PORT; connections are closed at once while it is empty."""
        self.delay = 0.0
        """Seconds by which every chunk of a reply is late; delays do not add up."""
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        """Listens until left, then ends every connection."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        try:
            yield self
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._forward(near, back)
        except (OSError, asyncio.CancelledError):
            pass  # either side may end at any time: that is what is tested
        finally:
            self._connections.discard(task)
            back.close()

    async def _forward(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        if not self.target:
            return
        host, _, port = self.target.rpartition(":")
        far, forth = await asyncio.open_connection(host, int(port))
        try:
            copies = {
                asyncio.create_task(_copy(near, forth)),
                asyncio.create_task(self._copy_late(far, back)),
            }
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            for each in copies:
                each.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        finally:
            forth.close()

    async def _copy_late(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Copies with a delay, which does not grow along a stream."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, chunk = await waiting.get()
                await asyncio.sleep(max(due - loop.time(), 0.0))
                sink.write(chunk)
                await sink.drain()

        async with asyncio.TaskGroup() as group:
            delivering = group.create_task(deliver())
            while chunk := await source.read(_CHUNK):
                waiting.put_nowait((loop.time() + self.delay, chunk))
            delivering.cancel()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        sink.write(chunk)
        await sink.drain()
