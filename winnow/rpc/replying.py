"""Awaits the reply of a gRPC call without leaking memory when the caller is cancelled.

Uses the private attributes `_cython_call` and `_call_response` of grpc.aio. Tested with grpcio
1.85; `tests/winnow/test_replying.py` fails if a release renames them.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar, cast

import grpc

Reply = TypeVar("Reply")
_CANCELLED = "the caller was cancelled"


async def reply_of(call: Awaitable[Reply]) -> Reply:
    """Returns the reply of a call with a single reply; raises the error of the call.

    If the current task is cancelled, the call is cancelled, too. gRPC (up to 1.85, grpc #43360)
    leaks a kilobyte for each call that is awaited while its task is cancelled. So this function
    awaits the call only after it has ended.
    """
    ended = asyncio.Event()
    cast("grpc.aio.Call", call).add_done_callback(lambda _: ended.set())
    # a call that cannot be sent never calls back, but its task ends
    if (sending := getattr(call, "_call_response", None)) is not None:
        sending.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
    except asyncio.CancelledError:
        _cancel_call(call)
        raise
    return await call


def _cancel_call(call: Any) -> None:
    """Cancels a call without cancelling the tasks that await it, unlike `call.cancel()`."""
    cython_call = getattr(call, "_cython_call", None)
    if cython_call is None:  # a call with interceptors has several
        call.cancel()
    elif not cython_call.done():
        cython_call.cancel(_CANCELLED)
