"""Admission of passages that are to be stored, apart from questions.

Knows how many passages each client has in hand; does not know what is done with them. A request is
refused when there is too much in hand, with a time to try again. A stream waits instead: it is read
no faster than it is stored.
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
from winnow.quoting import are
from winnow.stateless.feed.encoding import PreparedPut
from winnow.stateless.feed.metrics import FeedMetrics

_CHARACTERS = 2_000
"""Characters of a passage that counts as one."""
_DELETIONS = 50
"""Deletions that count as one passage: they are not encoded."""
_HALF_LIFE = 5.0
"""Seconds after which a measured speed counts half."""
_SOONEST, _LATEST = 0.1, 5.0
"""Bounds of the seconds after which a refused caller may try again."""


def work_of(writes: Sequence[PreparedPut] | Sequence[Deletion]) -> int:
    """The work that writes cause, in passages."""
    passages = [
        each.write.put.passage
        for each in writes
        if isinstance(each, PreparedPut) and each.write.put is not None
    ]
    lengths = (len(each.title) + len(each.text) for each in passages)
    deletions = len(writes) - len(passages)
    return sum(max(math.ceil(each / _CHARACTERS), 1) for each in lengths) + math.ceil(
        deletions / _DELETIONS
    )


class FeedAdmission:
    """Admits writes while there is room for them, and shares the room fairly among clients."""

    def __init__(self, most: int, metrics: FeedMetrics, clock: Clock = time.monotonic) -> None:
        """`most`: the greatest number of passages in hand."""
        self._most, self._metrics = most, metrics
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)
        self._pace = Pace(_HALF_LIFE, clock)
        self._freed = asyncio.Event()

    @property
    def inside(self) -> int:
        """Number of passages in flight."""
        return self._places.total

    def refusal(self, client: str) -> OverloadedError | None:
        """Why a request is refused before its message is read; None if it is not."""
        return None if self._fits(1, client) else self._refused(1, client)

    @contextmanager
    def enter(self, work: int, client: str) -> Iterator[None]:
        """Counts a request while it is in hand; admits any request while nothing is in hand.

        Raises:
            OverloadedError: there is no room, or it would take the room of other clients.

        """
        if not self._fits(work, client):
            raise self._refused(work, client)
        with self._inside(work, client):
            yield

    @asynccontextmanager
    async def entered(self, work: int, client: str, deadline: Deadline) -> AsyncIterator[None]:
        """Counts a message of a stream while it is in hand, and waits for room before.

        Raises:
            OverloadedError: there was no room before the deadline.

        """
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                while not self._fits(work, client):
                    self._places.refuse(client, work)
                    await self._freed.wait()
        except TimeoutError:
            raise self._refused(work, client) from None
        with self._inside(work, client):
            yield

    def _fits(self, work: int, client: str) -> bool:
        return not self.inside or self._places.room(client, self._most, self._most, work) >= work

    @contextmanager
    def _inside(self, work: int, client: str) -> Iterator[None]:
        if not self.inside:
            self._pace.begin()
        self._places.take(client, work)
        self._metrics.in_hand.set(self.inside)
        try:
            yield
            self._pace.done(work)
        finally:
            self._places.give_back(client, work)
            self._metrics.in_hand.set(self.inside)
            self._freed.set()
            self._freed = asyncio.Event()

    def _refused(self, work: int, client: str) -> OverloadedError:
        self._places.refuse(client, work)
        self._metrics.refusals.inc()
        over = min(self.inside + work - self._most, self.inside)
        wait = min(max(over * (self._pace.seconds or 0.0), _SOONEST), _LATEST)
        return OverloadedError(
            f"{are(self.inside, 'passage')} being stored, of at most {self._most}, and no client "
            f"gets more than its share: there is no room for {work} more; try again in "
            f"{wait:.2f} s",
            wait,
        )
