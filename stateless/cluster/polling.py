"""When content nodes are polled: less often while no request arrives.

Knows when requests arrive; knows neither nodes nor requests.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from winnow.deadline import Clock

QUIET_SECONDS = 5.0
"""Seconds without a request after which nodes are polled less often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """Intervals of DNS look-ups and of polls, in seconds."""

    resolve_every: float = 5.0
    poll_every: float = 0.5
    poll_idle: float = 0.0
    """Interval of polls of a healthy node while no request arrives; at least `poll_every`."""
    poll_timeout: float = 1.0
    max_misses: int = 2
    """Number of consecutive failed polls after which a node gets no new calls."""


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
