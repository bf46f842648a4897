"""Attacks by connections that send another protocol, half a frame, or nothing."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence

from bench.hostile import frames, payloads
from bench.hostile.attacks.target import Target, host_and_port, paced

CLOSED = "closed"
"""Outcome of a connection that the server closed."""
_HELD = 2_000
_PLAIN = 2_000
_TIMEOUT = 5.0
_OPENING = 5.0
"""Most seconds in which held connections are opened."""
_OPENINGS = (
    b"",
    frames.PREFACE[:10],
    frames.PREFACE,
    frames.PREFACE + frames.frame(frames.SETTINGS) + b"\0\0",  # a third of a length
    frames.PREFACE + frames.frame(frames.SETTINGS) + frames.call(1, payloads.ANSWER)[:20],
    frames.PREFACE + frames.frame(frames.SETTINGS) + frames.call(1, payloads.ANSWER),
)
_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(192)
"""Start of a TLS handshake."""
_OTHERS = (
    f"GET /{payloads.MARK} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
    b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
    _HELLO,
    payloads.MARK.encode() * 100,
)


async def connections(target: Target) -> Counter[str]:
    """Holds connections that are idle, silent, or stop in the middle of a frame."""
    return await held(host_and_port(target.front), _OPENINGS, target.seconds)


async def held(address: tuple[str, int], openings: Sequence[bytes], seconds: float) -> Counter[str]:
    """Holds connections; each sends one of the openings, and no more."""
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

        opening = min(_OPENING, seconds / 2)
        outcomes = await paced(_HELD, opening, hold)
        await asyncio.sleep(seconds - opening)
        return outcomes


async def others(target: Target) -> Counter[str]:
    """Sends HTTP/1, TLS and plain text."""

    async def speak(number: int) -> str:
        try:
            async with asyncio.timeout(_TIMEOUT):
                reader, writer = await asyncio.open_connection(*host_and_port(target.front))
                with contextlib.closing(writer):
                    writer.write(_OTHERS[number % len(_OTHERS)])
                    while await reader.read(1 << 16):
                        pass
        except TimeoutError:
            return "held"
        except OSError:
            pass
        return CLOSED

    return await paced(_PLAIN, target.seconds, speak, at_once=500)
