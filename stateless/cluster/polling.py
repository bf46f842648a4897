"""When content nodes are polled: less often while no request arrives.

Knows when requests arrive; knows neither nodes nor requests.
"""

import asyncio
import contextlib

from winnow.deadline import Clock

QUIET_SECONDS = 5.0
"""Seconds without a request after which nodes are polled less often."""


class PollingSchedule:
    """Records requests, and wakes the waiting polls at the first request after a quiet time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_request: float | None = None
        self._woken = asyncio.Event()

    def record_request(self) -> None:
        """Records a request; wakes the waiting polls after a quiet time."""
        was_quiet = not self.is_active
        self._last_request = self._clock()
        if was_quiet:
            self._woken.set()
            self._woken = asyncio.Event()

    @property
    def is_active(self) -> bool:
        """Whether a request arrived within `QUIET_SECONDS`."""
        last = self._last_request
        return last is not None and self._clock() - last < QUIET_SECONDS

    async def wait(self, seconds: float) -> None:
        """Waits for `seconds`, or until the first request after a quiet time."""
        # not wait_for, which up to Python 3.11 may swallow a cancellation
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
