"""Attacks over HTTP: nonsense, half of something, and bodies without end."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable
from random import Random

from bench.hostile import requests
from bench.hostile.attacks import Target
from bench.hostile.attacks.sockets import held, hung_up
from bench.hostile.pacing import paced

_FUZZED, _BODIES = 4_000, 400
_AT_ONCE = 16
"""Bodies on their way."""
_PATIENCE = 2.0
_HEAD = b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
_OPENINGS = (
    b"",
    b"GET /livez HTT",
    b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx-a: ",
    _HEAD + b"content-length: 30000\r\n\r\n" + b" " * 29_999,
    _HEAD + b"transfer-encoding: chunked\r\n\r\n4000\r\n",
    b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,  # replies that nobody takes
)


async def requests_at_random(target: Target) -> Counter[str]:
    """Requests at random, each on a connection of its own."""
    chance = Random(target.seed)

    async def ask(_: int) -> str:
        return await said(target, [requests.request(chance)])

    return await paced(_FUZZED, target.seconds, ask)


async def connections(target: Target) -> Counter[str]:
    """Connections that are silent, or send half of something; held until the end."""
    return await held(target.http_address, _OPENINGS, target.seconds)


async def bodies(target: Target) -> Counter[str]:
    """Bodies that are long, that never end, or whose chunks are of one byte."""

    async def send(number: int) -> str:
        return await said(target, requests.long_body(number))

    return await paced(_BODIES, target.seconds, send, at_once=_AT_ONCE)


async def said(target: Target, pieces: Iterable[bytes], patience: float = _PATIENCE) -> str:
    """The status of the first reply, or how the connection ended."""
    try:
        async with asyncio.timeout(patience):
            reader, writer = await asyncio.open_connection(*target.http_address)
            with contextlib.closing(writer):
                sending = asyncio.create_task(_send(writer, pieces))
                try:
                    words = (await reader.readline()).split()
                finally:
                    sending.cancel()
    except TimeoutError:
        return "held"
    except (OSError, ValueError):
        return hung_up
    return words[1].decode(errors="replace") if len(words) > 1 else hung_up


async def _send(writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
