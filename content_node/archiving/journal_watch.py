"""Watches the journals of archived replicas, so that each replica reads every entry in time.

An archived replica does not follow its journal. One task of the node asks for the last entry of
each journal. If that is not the one of the stub, the replica is restored, and follows the journal
again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.supervision import keep_running
from winnow.deadline import Sleep
from winnow.journal.journal import JournalEnd, ReadsJournalEnds

_log = structlog.get_logger("content_node")
_INTERVAL = 5.0
"""Seconds between two looks at all journals. A journal must keep its entries for far longer."""
REPLY_SECONDS = 1.0
"""Seconds that a call waits for the journal's reply."""
_AT_ONCE = 16
"""Journals that a look asks at the same time, so that a silent one does not delay the others."""


@dataclass(eq=False, kw_only=True)
class WatchedReplica:
    """An archived replica and its place in its journal."""

    index_id: str
    shard: int
    """Number of the shard as it was built, which names the journal."""
    end: JournalEnd
    """The journal, and its last entry that the replica has stored."""
    restore: Callable[[], None]
    """Begins to restore the replica."""
    metrics: JournalMetrics
    is_behind: bool = field(default=False, init=False)
    """Whether the journal has other entries than the replica, as far as is known."""


class JournalWatch:
    """The archived replicas of a node. Has a task and a connection while there are any."""

    def __init__(
        self, open_ends: Callable[[], ReadsJournalEnds], *, sleep: Sleep = asyncio.sleep
    ) -> None:
        """`open_ends` returns what reads the ends of journals; it may raise UnavailableError."""
        self._open_ends, self._sleep = open_ends, sleep
        self._replicas: set[WatchedReplica] = set()
        self._ends: ReadsJournalEnds | None = None
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        """Cancelled tasks, which close the connection."""
        self._failure = ""
        """Why journals were not reached by the last look; empty if all were."""

    def add(self, replica: WatchedReplica) -> None:
        """Watches a replica until `remove`."""
        self._replicas.add(replica)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def remove(self, replica: WatchedReplica) -> None:
        """Ends watching a replica. Does not wait until the connection is closed: a call waits."""
        self._replicas.discard(replica)
        if not self._replicas and self._task is not None:
            self._task.cancel()
            self._ending.add(self._task)
            self._task.add_done_callback(self._ending.discard)
            self._task = None

    async def wait_until_ended(self) -> None:
        """Waits for the task that watched the last replica, and the end of its connection."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def has_all_entries(self, replica: WatchedReplica, seconds: float) -> bool | None:
        """Asks the journal whether the replica has all its entries; does not wait for a look.

        Returns None if the journal does not reply within `seconds`. Returns False if the replica is
        not watched any more: it was restored, and may have later entries.
        """
        failure = "no reply in time"
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                failure = await self._check(replica)
        if replica.is_behind or replica not in self._replicas:
            return False
        return None if failure else True

    async def _run(self) -> None:
        try:
            await keep_running("watching journals", self._look_at_all)
        finally:
            if self._ends is not None and not self._replicas:
                await self._ends.close()

    async def _look_at_all(self) -> None:
        """Looks at all journals at intervals, until it is cancelled."""
        while True:
            failures = await asyncio.gather(*map(self._check_in_turn, self._replicas))
            failure = next(filter(None, failures), "")
            if failure and not self._failure:
                _log.warning("journals of archived shards not reached", reason=failure)
            self._failure = failure
            await self._sleep(_INTERVAL)

    async def _check_in_turn(self, replica: WatchedReplica) -> str:
        async with self._at_once:
            return await self._check(replica)

    async def _check(self, replica: WatchedReplica) -> str:
        """Begins to restore a replica unless the last entry of its journal is its own.

        Returns why its journal cannot be read; an empty text if it was read.
        """
        if replica not in self._replicas:
            return ""  # it was restored meanwhile
        try:
            if self._ends is None:
                self._ends = self._open_ends()
            end = await self._ends.read(replica.index_id, replica.shard)
        except Exception as error:  # noqa: BLE001 (the next look may succeed)
            if replica in self._replicas:
                replica.metrics.record_lost()
            return str(error) or repr(error)
        if replica in self._replicas:
            self._compare(replica, end)
        return ""

    def _compare(self, replica: WatchedReplica, end: JournalEnd | None) -> None:
        lacking = end.sequence - replica.end.sequence if end is not None else 0
        replica.metrics.record_followed(max(lacking, 0))
        if end != replica.end:
            # if entries are lost, the follower of the restored shard reports it
            replica.is_behind = True
            replica.restore()
