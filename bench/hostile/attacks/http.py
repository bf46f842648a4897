"""Attacks over HTTP: random requests, incomplete requests, and long or endless bodies."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable
from random import Random

from bench.hostile import requests
from bench.hostile.attacks.sockets import CLOSED, hold_connections
from bench.hostile.attacks.target import Target, host_and_port, run_paced

_FUZZED_REQUESTS, _LONG_BODIES = 4_000, 400
_CONCURRENT_BODIES = 16
"""Number of bodies in flight."""
_TIMEOUT = 2.0
_POST_HEAD = b"POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
_OPENINGS = (
    b"",
    b"GET /livez HTT",
    b"GET /livez HTTP/1.1\r\nhost: localhost\r\nx-a: ",
    _POST_HEAD + b"content-length: 30000\r\n\r\n" + b" " * 29_999,
    _POST_HEAD + b"transfer-encoding: chunked\r\n\r\n4000\r\n",
    b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,  # replies that are never read
)


async def send_random_requests(target: Target) -> Counter[str]:
    """Sends random requests, each on a separate connection."""
    rng = Random(target.seed)

    async def ask(_: int) -> str:
        return await status_of(target, [requests.random_request(rng)])

    return await run_paced(_FUZZED_REQUESTS, target.seconds, ask)


async def hold_idle_connections(target: Target) -> Counter[str]:
    """Holds connections that send nothing or half a request, or do not read replies."""
    return await hold_connections(host_and_port(target.http), _OPENINGS, target.seconds)


async def send_long_bodies(target: Target) -> Counter[str]:
    """Sends bodies that are long, that never end, or whose chunks have one byte."""

    async def send(number: int) -> str:
        return await status_of(target, requests.long_body(number))

    return await run_paced(_LONG_BODIES, target.seconds, send, max_concurrent=_CONCURRENT_BODIES)


async def status_of(target: Target, pieces: Iterable[bytes], timeout: float = _TIMEOUT) -> str:
    """Sends a request; returns the status of its reply, `held` after `timeout`, or `closed`."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(*host_and_port(target.http))
            with contextlib.closing(writer):
                sending = asyncio.create_task(_send(writer, pieces))
                try:
                    status_line = (await reader.readline()).split()
                finally:
                    sending.cancel()
    except TimeoutError:
        return "held"
    except (OSError, ValueError):
        return CLOSED
    return status_line[1].decode(errors="replace") if len(status_line) > 1 else CLOSED


async def _send(writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
