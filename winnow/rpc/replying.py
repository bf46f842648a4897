"""Waiting for the reply of a call, so that one that is given up leaves nothing behind.

This file alone uses `_cython_call` of grpc.aio, which is not public. Tried with grpcio
1.85; `tests/winnow/test_replying.py` fails by name when it moves.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

Reply = TypeVar("Reply")
_WHY = "nobody waits for it any more"


async def until_replied(call: Awaitable[Reply]) -> Reply:
    """The reply of a call with one reply; raises what the call raises.

    If whoever waits is cancelled, so is the call. gRPC (up to 1.85, grpc #43360) keeps a kilobyte
    for ever for each call whose waiting task is cancelled, so that one waits until the call has
    ended underneath it.
    """
    reply = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(reply)
    except asyncio.CancelledError:
        reply.add_done_callback(_forget)
        _end(call)
        raise


def _end(call: Any) -> None:
    """As `call.cancel()`, which would cancel the waiting task, too."""
    underneath = getattr(call, "_cython_call", None)
    if underneath is None:  # a call with interceptors has several
        call.cancel()
    elif not underneath.done():
        underneath.cancel(_WHY)


def _forget(reply: "asyncio.Future[Any]") -> None:
    """Takes note of an error that nobody waits for."""
    if not reply.cancelled():
        reply.exception()
