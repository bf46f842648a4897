"""An event loop in a thread, for servers that commands of this process call."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TypeVar

from tenacious import LONG

Served = TypeVar("Served")


@contextlib.contextmanager
def served_in_thread(
    serving: Callable[[], AbstractAsyncContextManager[Served]],
) -> Iterator[Served]:
    """Enters what `serving` returns in another thread; the calling thread may block meanwhile."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    stack = AsyncExitStack()
    try:
        entering = asyncio.run_coroutine_threadsafe(stack.enter_async_context(serving()), loop)
        yield entering.result(LONG)
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(LONG)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
