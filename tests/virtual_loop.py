"""An event loop with virtual time: while all tasks sleep, time jumps to the next timer."""

import asyncio
import selectors
from typing import Any


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
