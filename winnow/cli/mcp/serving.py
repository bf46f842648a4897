"""Serves an index to one agent, on standard input and output."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

from mcp.server.stdio import stdio_server

from winnow.cli.mcp.sources import AgentSource, ApiOfOpeningIndex
from winnow.mcp.server import AgentIndex, open_server

if TYPE_CHECKING:
    from anyio import AsyncFile

_READ_BYTES = 65_536


async def serve_stdio(source: AgentSource, timeout: float, descriptor: int = 0) -> None:
    """Serves until the input ends. Everything else that is printed goes to standard error.

    Args:
        source: opens the index.
        timeout: seconds until a call is given up.
        descriptor: file descriptor of the input.

    """
    # the package only iterates over the lines. Its own reader would end only with the input, and
    # not when a signal ends this command
    lines = cast("AsyncFile[str]", lines_of(descriptor))
    async with stdio_server(stdin=lines) as (reading, writing), ApiOfOpeningIndex(source) as api:
        server = open_server(AgentIndex(api=api, timeout=timeout))
        await server.run(reading, writing, server.create_initialization_options())


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    """Yields the lines of a file descriptor, which a thread reads. Can be cancelled at any time."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes | None]()

    def read() -> None:
        rest = b""
        with contextlib.suppress(OSError, RuntimeError):  # the loop is closed
            while data := os.read(descriptor, _READ_BYTES):
                *whole, rest = (rest + data).split(b"\n")
                for each in whole:
                    loop.call_soon_threadsafe(lines.put_nowait, each)
            loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line.decode(errors="replace")
