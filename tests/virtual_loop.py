"""An event loop in which time passes only while nothing can be done: a wait takes none."""

import asyncio
import selectors
from typing import Any


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0 seconds."""

    def __init__(self) -> None:
        self._passed = 0.0
        super().__init__(_Skipping(self))

    def time(self) -> float:
        return self._passed

    def skip(self, seconds: float) -> None:
        """Lets time pass."""
        self._passed += seconds


class _Skipping(selectors.DefaultSelector):
    """Waits for nothing, and says that the time has passed."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout:
            self._loop.skip(timeout)
        return super().select(0)
