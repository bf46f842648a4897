"""Memory is given back once a flood of calls has ended.

Knows when calls begin and end; does not know what memory is, or how it is given back.
"""

import asyncio
from collections.abc import Callable
from typing import Any

_FLOOD = 1_000
"""Calls, some 20 KB each."""
_PAUSE = 2.0
"""Seconds in which what they left is put away, and the rest of a flood may end."""


class IdleTrimmer:
    """The calls in hand of a server."""

    def __init__(
        self, trim: Callable[[], object] | None, flood: int = _FLOOD, pause: float = _PAUSE
    ) -> None:
        """`trim` gives back memory, in a thread; None where that cannot be done."""
        self._trim, self._flood, self._pause = trim, flood, pause
        self._in_hand = self._most = 0
        """Now, and at most since memory was given back."""
        self._waiting = False

    def begin(self, context: Any) -> None:
        """A call has begun; its context tells when it ends."""
        self._in_hand += 1
        self._most = max(self._most, self._in_hand)
        context.add_done_callback(self._end)

    def _end(self, _context: Any) -> None:
        self._in_hand -= 1
        if self._trim and not self._waiting and self._most - self._in_hand >= self._flood:
            self._waiting = True
            asyncio.get_running_loop().call_later(self._pause, self._give_back, self._trim)

    def _give_back(self, trim: Callable[[], object]) -> None:
        self._waiting, self._most = False, self._in_hand
        asyncio.get_running_loop().run_in_executor(None, trim)
