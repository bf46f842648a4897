"""Waits for the reply of a call so that a call that is given up leaves nothing behind.

Only this file uses `_cython_call` and `_call_response` of grpc.aio, which are not public. Tried
with grpcio 1.85; `tests/winnow/test_replying.py` fails by name when they move.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

import grpc

Reply = TypeVar("Reply")
_WHY = "nobody waits for it any more"


async def until_replied(call: Awaitable[Reply]) -> Reply:
    """The reply of a call with one reply; raises what the call raises.

    If the waiting task is cancelled, so is the call. gRPC (up to 1.85, grpc #43360) keeps a
    kilobyte for ever for each call that is awaited when its task is cancelled. So the call is
    awaited only once it has ended.
    """
    ended = asyncio.Event()
    cast("grpc.aio.Call", call).add_done_callback(lambda _: ended.set())
    # a call that cannot be sent never ends, but its task does
    if (sending := getattr(call, "_call_response", None)) is not None:
        sending.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
    except asyncio.CancelledError:
        _end(call)
        raise
    return await call


def _end(call: Any) -> None:
    """Cancels a call, but no task that awaits it, as `call.cancel()` would."""
    underneath = getattr(call, "_cython_call", None)
    if underneath is None:  # a call with interceptors has several
        call.cancel()
    elif not underneath.done():
        underneath.cancel(_WHY)
