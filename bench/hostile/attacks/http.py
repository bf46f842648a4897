"""Attacks over HTTP: random requests, half-sent requests, and endless bodies."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable
from random import Random

from bench.hostile import requests
from bench.hostile.attacks.sockets import CLOSED, held
from bench.hostile.attacks.target import Target, host_and_port, paced

_FUZZED, _BODIES = 4_000, 400
_AT_ONCE = 16
"""Bodies that are sent at the same time."""
_TIMEOUT = 2.0
_HEAD = b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
_OPENINGS = (
    b"",
    b"GET /livez HTT",
    b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx-a: ",
    _HEAD + b"content-length: 30000\r\n\r\n" + b" " * 29_999,
    _HEAD + b"transfer-encoding: chunked\r\n\r\n4000\r\n",
    b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,  # replies that are never read
)


async def fuzzed(target: Target) -> Counter[str]:
    """Sends random requests, each on a separate connection."""
    chance = Random(target.seed)

    async def ask(_: int) -> str:
        return await status_of(target, [requests.request(chance)])

    return await paced(_FUZZED, target.seconds, ask)


async def connections(target: Target) -> Counter[str]:
    """Holds connections that are silent, or that send half a request."""
    return await held(host_and_port(target.http), _OPENINGS, target.seconds)


async def bodies(target: Target) -> Counter[str]:
    """Sends bodies that are long, that never end, or whose chunks have one byte."""

    async def send(number: int) -> str:
        return await status_of(target, requests.long_body(number))

    return await paced(_BODIES, target.seconds, send, at_once=_AT_ONCE)


async def status_of(target: Target, pieces: Iterable[bytes], timeout: float = _TIMEOUT) -> str:
    """Sends a request; returns the status of the first reply, or how the connection ended."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(*host_and_port(target.http))
            with contextlib.closing(writer):
                sending = asyncio.create_task(_send(writer, pieces))
                try:
                    words = (await reader.readline()).split()
                finally:
                    sending.cancel()
    except TimeoutError:
        return "held"
    except (OSError, ValueError):
        return CLOSED
    return words[1].decode(errors="replace") if len(words) > 1 else CLOSED


async def _send(writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
