"""Knows when no entry that this replica has sent can arrive in the journal any more.

An entry of a publish that has ended is stored, or it arrives expired (`winnow.journal.expiry`). A
cancelled publish, or one of a killed process, may have sent an entry that has not expired yet.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from winnow.deadline import Sleep
from winnow.journal.expiry import MAX_PUBLISH_SECONDS, SKEW


class OutstandingPublishes:
    """The publishes of this replica whose entries the journal may still store."""

    def __init__(
        self,
        skew: float = SKEW,
        *,
        now: Callable[[], float] = lambda: asyncio.get_running_loop().time(),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`skew` is the limit of seconds between the clocks of writers and journal.

        Assumes that an earlier process of the node published until now.
        """
        self._window, self._now, self._sleep = MAX_PUBLISH_SECONDS + skew, now, sleep
        self._running = 0
        self._none_running = asyncio.Event()
        self._none_running.set()
        self._expired_at = now() + self._window
        """When the entries of cancelled publishes have expired."""

    @property
    def is_idle(self) -> bool:
        """Whether no publish runs now."""
        return not self._running

    @contextmanager
    def track(self) -> Iterator[None]:
        """Counts a publish while it runs."""
        self._running += 1
        self._none_running.clear()
        try:
            yield
        except asyncio.CancelledError:
            self._expired_at = max(self._expired_at, self._now() + self._window)
            raise
        finally:
            self._running -= 1
            if not self._running:
                self._none_running.set()

    async def wait(self) -> None:
        """Returns when no entry can arrive any more. No publish must begin meanwhile."""
        await self._none_running.wait()
        while (left := self._expired_at - self._now()) > 0:
            await self._sleep(left)
