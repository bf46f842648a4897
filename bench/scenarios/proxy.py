"""A TCP proxy that delays a node's replies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

_CHUNK = 1 << 16


class Proxy:
    """Forwards connections to a TCP server, and delays its replies."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.target = ""
        """HOST:PORT of the server. While it is empty, the proxy closes every connection."""
        self.delay = 0.0
        """Seconds by which each chunk of a reply is delayed. Delays of chunks do not add up."""
        self._port = port
        self._connections: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        """Listens within the context. The exit of the context closes every connection."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        try:
            yield self
        finally:
            server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(
        self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._forward(client_reader, client_writer)
        except (OSError, asyncio.CancelledError):
            pass  # tests kill either side at any time
        finally:
            self._connections.discard(task)
            client_writer.close()

    async def _forward(
        self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter
    ) -> None:
        if not self.target:
            return
        host, _, port = self.target.rpartition(":")
        server_reader, server_writer = await asyncio.open_connection(host, int(port))
        try:
            copies = {
                asyncio.create_task(_copy(client_reader, server_writer)),
                asyncio.create_task(self._copy_delayed(server_reader, client_writer)),
            }
            await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
            for each in copies:
                each.cancel()
            await asyncio.gather(*copies, return_exceptions=True)
        finally:
            server_writer.close()

    async def _copy_delayed(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Copies a stream, each chunk `delay` seconds after it arrived."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, chunk = await chunks.get()
                await asyncio.sleep(max(due - loop.time(), 0.0))
                writer.write(chunk)
                await writer.drain()

        async with asyncio.TaskGroup() as group:
            delivery = group.create_task(deliver())
            while chunk := await reader.read(_CHUNK):
                chunks.put_nowait((loop.time() + self.delay, chunk))
            delivery.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
