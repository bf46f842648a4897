"""A proxy in front of one TCP server, whose connections can be cut or frozen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from winnow.cli.local.ports import free_ports


class FaultyLink:
    """A proxy of the server at a URL; `link_to` starts one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port
        self._own_port = free_ports(1)[0]
        self._server: asyncio.Server | None = None
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """URL where the proxy listens; `cut` and `join` do not change it."""
        return f"{self._scheme}://127.0.0.1:{self._own_port}"

    async def join(self) -> None:
        """Starts to accept connections."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._own_port)

    async def cut(self) -> None:
        """Closes all connections, and accepts no new ones."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def freeze(self) -> None:
        """Holds all bytes back; connections stay open."""
        self._flows.clear()

    def thaw(self) -> None:
        """Forwards the held bytes and all later ones."""
        self._flows.set()

    async def _accept(self, near: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(near, client))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)
        await asyncio.wait([connection])

    async def _serve(self, near: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        far, server = await asyncio.open_connection(self._host, self._port)
        try:
            await asyncio.gather(self._pass_on(near, server), self._pass_on(far, client))
        finally:
            server.close()
            client.close()

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while content := await source.read(65_536):
                await self._flows.wait()
                sink.write(content)
                await sink.drain()
        await self._flows.wait()
        sink.close()


@asynccontextmanager
async def link_to(url: str) -> AsyncIterator[FaultyLink]:
    """Starts a proxy of the server at a URL; the exit of the context cuts it."""
    link = FaultyLink(url)
    await link.join()
    try:
        yield link
    finally:
        await link.cut()
