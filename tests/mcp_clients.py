"""The official client of the Model Context Protocol, on the transports that tests use."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tenacious import LONG


@contextlib.asynccontextmanager
async def http_agent(
    url: str, headers: Mapping[str, str] | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    """Connects to `/mcp` of a front. The mode `legacy` begins with the older handshake."""
    async with httpx2.AsyncClient(headers=dict(headers or {}), timeout=LONG) as transport:
        opened = streamable_http_client(url, http_client=transport)
        async with Client(opened, mode=mode) as client:
            yield client


@contextlib.asynccontextmanager
async def stdio_agent(log: Path, *arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """Starts `winnow mcp` with these arguments, as an agent's program does.

    `log` takes the standard error of the command.
    """
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "winnow", "mcp", *arguments], env=dict(os.environ)
    )
    with log.open("a", encoding="utf-8") as errors:
        async with Client(stdio_client(command, errlog=errors), mode=mode) as client:
            yield client


def text_of(result: Any) -> str:
    """Returns the text of a tool's result."""
    (content,) = result.content
    return str(content.text)
