"""Work that is of use only as long as its caller is there."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from winnow.stateless.http.body import GoneError

Result = TypeVar("Result")


async def until_gone(receive: Receive) -> None:
    """Returns when the caller has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_there(work: Coroutine[Any, Any, Result], receive: Receive) -> Result:
    """The result of work, which is cancelled if its caller goes; raises GoneError then.

    Args:
        work: what is done for the caller.
        receive: of a request whose body was read.

    """
    working = asyncio.create_task(work)
    gone = asyncio.create_task(until_gone(receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise GoneError
        return working.result()
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait((working, gone))
