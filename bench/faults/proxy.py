"""A proxy that makes a node slow: every byte that it sends arrives later."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

_CHUNK = 1 << 16


class Proxy:
    """Stands before a TCP server."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.target = ""
        """HOST:PORT; connections are closed at once while it is empty."""
        self.delay = 0.0
        """Seconds by which replies are late; what follows within them is late by no more."""
        self._port = port
        self._talking: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        """Serves until left, then ends every connection."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        try:
            yield self
        finally:
            server.close()
            for task in self._talking:
                task.cancel()
            await asyncio.gather(*self._talking, return_exceptions=True)

    async def _serve(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talking.add(task)
        try:
            await self._talk(near, back)
        except (OSError, asyncio.CancelledError):
            pass  # either side may go at any time: that is what is being tried
        finally:
            self._talking.discard(task)
            back.close()

    async def _talk(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        if not self.target:
            return
        host, _, port = self.target.rpartition(":")
        far, forth = await asyncio.open_connection(host, int(port))
        try:
            asked = asyncio.create_task(_copy(near, forth))
            replied = asyncio.create_task(self._late(far, back))
            await asyncio.wait({asked, replied}, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
            replied.cancel()
            await asyncio.gather(asked, replied, return_exceptions=True)
        finally:
            forth.close()

    async def _late(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Copies with a delay that is not longer for what comes in a stream."""
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
