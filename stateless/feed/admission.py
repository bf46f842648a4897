"""Admits fed passages, separately from questions.

This module knows how many passages each client has in flight. It does not know how passages are
stored. While too many passages are in flight, a request is refused with a time to try again. A
stream waits instead, and is not read meanwhile.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from winnow.deadline import Clock, Deadline
from winnow.domain.write import Deletion
from winnow.errors import OverloadedError
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings
from winnow.policy.pace import Pace
from winnow.quoting import are, many
from winnow.stateless.feed.encoding import PreparedPut
from winnow.stateless.feed.metrics import FeedMetrics

_CHARACTERS_PER_UNIT = 2_000
"""A passage with up to this many characters is one unit of work. A longer passage is several."""
_DELETIONS_PER_UNIT = 50
"""Number of deletions in one unit of work. They are cheap, because they are not encoded."""
_PACE_HALF_LIFE = 5.0
"""Seconds after which the weight of a measured pace has halved."""
_MIN_RETRY_AFTER, _MAX_RETRY_AFTER = 0.1, 5.0
"""Bounds of the seconds after which a refused caller should try again."""


def work_of(writes: Sequence[PreparedPut] | Sequence[Deletion]) -> int:
    """Returns the work of writes, in passages of usual length."""
    passages = [
        each.write.put.passage
        for each in writes
        if isinstance(each, PreparedPut) and each.write.put is not None
    ]
    lengths = (len(each.title) + len(each.text) for each in passages)
    deletions = len(writes) - len(passages)
    units = sum(max(math.ceil(each / _CHARACTERS_PER_UNIT), 1) for each in lengths)
    return units + math.ceil(deletions / _DELETIONS_PER_UNIT)


class FeedAdmission:
    """Admits writes up to a limit, which clients share fairly."""

    def __init__(
        self, max_in_flight: int, metrics: FeedMetrics, clock: Clock = time.monotonic
    ) -> None:
        """`max_in_flight`: maximum number of passages in flight."""
        self._max, self._metrics = max_in_flight, metrics
        shared = LoadSettings()
        self._shares = FairShares(
            shared.reserved_share, shared.presence_seconds, shared.refusal_seconds, clock
        )
        self._pace = Pace(_PACE_HALF_LIFE, clock)
        self._room_freed = asyncio.Event()

    @property
    def in_flight(self) -> int:
        """Number of passages in flight."""
        return self._shares.total

    def refusal(self, client: str) -> OverloadedError | None:
        """Returns the error that refuses a client's request before it is read, or None."""
        return None if self._fits_queue(1, client) else self._refusal(1, client)

    @contextmanager
    def enter(self, work: int, client: str) -> Iterator[None]:
        """Admits a request, and counts its work within the context.

        If nothing is in flight, a request of any size is admitted.

        Raises:
            OverloadedError: there is no room, or the request exceeds the client's share.

        """
        if not self._fits_queue(work, client):
            raise self._refusal(work, client)
        with self._count(work, client):
            yield

    @asynccontextmanager
    async def wait_and_enter(
        self, work: int, client: str, deadline: Deadline
    ) -> AsyncIterator[None]:
        """Waits for room for a message of a stream, then counts its work within the context.

        Raises:
            OverloadedError: there was no room before the deadline.

        """
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                while not self._fits_queue(work, client):
                    self._shares.refuse(client, work)
                    await self._room_freed.wait()
        except TimeoutError:
            raise self._refusal(work, client) from None
        with self._count(work, client):
            yield

    def _fits_queue(self, work: int, client: str) -> bool:
        return not self.in_flight or self._shares.room(client, self._max, self._max, work) >= work

    @contextmanager
    def _count(self, work: int, client: str) -> Iterator[None]:
        if not self.in_flight:
            self._pace.begin()
        self._shares.take(client, work)
        self._metrics.in_hand.set(self.in_flight)
        try:
            yield
            self._pace.done(work)
        finally:
            self._shares.release(client, work)
            self._metrics.in_hand.set(self.in_flight)
            self._room_freed.set()
            self._room_freed = asyncio.Event()

    def _refusal(self, work: int, client: str) -> OverloadedError:
        """Counts a refusal; returns its error."""
        self._shares.refuse(client, work)
        self._metrics.refusals.inc()
        excess = min(self.in_flight + work - self._max, self.in_flight)
        seconds = excess * (self._pace.seconds or 0.0)
        wait = min(max(seconds, _MIN_RETRY_AFTER), _MAX_RETRY_AFTER)
        reason = (
            f"the limit of all clients is {self._max}"
            if self.in_flight + work > self._max
            else "the remaining room is reserved for other clients"
        )
        return OverloadedError(
            f"no room for {many(work, 'more passage')}: {are(self.in_flight, 'passage')} being "
            f"stored, and {reason}; try again in {wait:.2f} s",
            wait,
        )
