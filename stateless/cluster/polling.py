"""Decides when content nodes are polled: less often while no requests arrive.

This module knows when requests arrive. It knows neither nodes nor the requests.
"""

import asyncio
import contextlib
from dataclasses import dataclass

from winnow.deadline import Clock

QUIET_SECONDS = 5.0
"""Seconds without a request after which nodes are polled less often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """Intervals of DNS lookups and of polls, in seconds."""

    resolve_every: float = 5.0
    """Interval between two DNS lookups of a target."""
    poll_every: float = 0.5
    """Interval between two polls of a node while requests arrive."""
    poll_idle: float = 0.0
    """Interval between two polls of a healthy node while no requests arrive. If it is less than
    `poll_every`, that interval is used.
    """
    poll_timeout: float = 1.0
    """Maximum duration of a poll."""
    max_misses: int = 2
    """Number of consecutive failed polls after which a node gets no new calls."""


class PollingSchedule:
    """Records requests. The first request after a quiet time wakes all waiting polls."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_request: float | None = None
        self._woken = asyncio.Event()

    def record_request(self) -> None:
        """Records a request. If it is the first after a quiet time, wakes all waiting polls."""
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
        # not `wait_for`, which may swallow a cancellation up to Python 3.11
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
