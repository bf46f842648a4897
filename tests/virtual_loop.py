"""An event loop with virtual time: while all tasks sleep, time jumps to the next timer."""

import asyncio
import contextlib
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock begins at 0 seconds."""

    def __init__(self) -> None:
        self._passed = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        return self._passed

    def skip(self, seconds: float) -> None:
        """Advances the clock."""
        self._passed += seconds


class _Skipping(selectors.DefaultSelector):
    """A selector that advances the loop's clock by the timeout instead of waiting."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.skip(timeout)
        return super().select(0)


def in_virtual_time(
    test: Callable[Arguments, Coroutine[Any, Any, None]],
) -> Callable[Arguments, None]:
    """Runs an asyncio test on a virtual loop, on which no timer ends before a task that can run.

    The test must not wait for threads, processes or sockets.
    """

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        with contextlib.closing(VirtualLoop()) as loop:
            loop.run_until_complete(test(*args, **kwargs))

    return run
