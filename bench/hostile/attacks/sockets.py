"""Attacks by connections that send another protocol, an incomplete frame, or nothing."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence

from bench.hostile import frames, payloads
from bench.hostile.attacks.target import Target, host_and_port, run_paced

CLOSED = "closed"
"""Outcome of a connection that the server closed."""
_CONNECTIONS = 2_000
_SPEAKERS = 2_000
_TIMEOUT = 5.0
_OPENING_SECONDS = 5.0
"""Maximum time in seconds over which the connections are opened."""
_OPENINGS = (
    b"",
    frames.PREFACE[:10],
    frames.PREFACE,
    frames.PREFACE + frames.frame(frames.SETTINGS) + b"\0\0",  # a third of a length
    frames.PREFACE + frames.frame(frames.SETTINGS) + frames.call_headers(1, payloads.ANSWER)[:20],
    frames.PREFACE + frames.frame(frames.SETTINGS) + frames.call_headers(1, payloads.ANSWER),
)
_TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(192)
"""Start of a TLS handshake."""
_OTHER_PROTOCOLS = (
    f"GET /{payloads.MARK} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
    _TLS_HELLO,
    payloads.MARK.encode() * 100,
)


async def hold_idle_connections(target: Target) -> Counter[str]:
    """Holds connections that send nothing, or stop within a frame."""
    return await hold_connections(host_and_port(target.front), _OPENINGS, target.seconds)


async def hold_connections(
    address: tuple[str, int], openings: Sequence[bytes], seconds: float
) -> Counter[str]:
    """Holds connections open. Each sends one of `openings`, then nothing."""
    async with contextlib.AsyncExitStack() as stack:

        async def hold(number: int) -> str:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    _, writer = await asyncio.open_connection(*address)
            except (OSError, TimeoutError):
                return "refused"
            stack.callback(writer.close)
            writer.write(openings[number % len(openings)])
            return "held"

        opening_seconds = min(_OPENING_SECONDS, seconds / 2)
        outcomes = await run_paced(_CONNECTIONS, opening_seconds, hold)
        await asyncio.sleep(seconds - opening_seconds)
        return outcomes


async def speak_other_protocols(target: Target) -> Counter[str]:
    """Sends HTTP/1, TLS and plain text to the gRPC port."""

    async def connect_and_send(number: int) -> str:
        try:
            async with asyncio.timeout(_TIMEOUT):
                reader, writer = await asyncio.open_connection(*host_and_port(target.front))
                with contextlib.closing(writer):
                    writer.write(_OTHER_PROTOCOLS[number % len(_OTHER_PROTOCOLS)])
                    while await reader.read(1 << 16):
                        pass
        except TimeoutError:
            return "held"
        except OSError:
            pass
        return CLOSED

    return await run_paced(_SPEAKERS, target.seconds, connect_and_send, max_concurrent=500)
