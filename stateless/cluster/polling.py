"""How often content nodes are polled: less often while no question comes.

Knows that questions come, and time; knows neither nodes nor questions.
"""

import asyncio
import contextlib

from winnow.deadline import Clock

QUIET = 5.0
"""Seconds without a question after which nodes are polled less often."""


class PollingSchedule:
    """Whether questions come; wakes the polls that rest when one does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: float | None = None
        self._came = asyncio.Event()

    def asked(self) -> None:
        """A question came: polls that rest are woken."""
        rested = not self.awake
        self._last = self._clock()
        if rested:
            self._came.set()
            self._came = asyncio.Event()

    @property
    def awake(self) -> bool:
        """Whether a question came lately."""
        return self._last is not None and self._clock() - self._last < QUIET

    async def rest(self, seconds: float) -> None:
        """Waits for so long, or until the first question after a quiet time."""
        # not wait_for, which up to Python 3.11 may swallow a cancellation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._came.wait()
