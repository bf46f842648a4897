"""Composes the write path of a shard: direct, or through a journal that the shard follows."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import structlog

from winnow.content_node.journal.following import JournalFollower
from winnow.content_node.journal.journaled import JournaledShard
from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.journal.outstanding import OutstandingPublishes
from winnow.content_node.live.closing import Closing
from winnow.content_node.live.copied_writer import TakesCopies
from winnow.content_node.live.limits import direct_write_refusal
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.shard.changes import FileChange
from winnow.domain.partition import root_of
from winnow.domain.shard import ShardInfo
from winnow.domain.write import Written
from winnow.errors import WinnowError
from winnow.journal.expiry import SKEW
from winnow.journal.journal import JournalEntry
from winnow.journal.opening import open_journal
from winnow.shard_writer import CountingShardWriter

_log = structlog.get_logger("content_node")
_CANCEL_INTERVAL = 0.25
"""Seconds after which a task that is still running is cancelled again."""
_CATCH_UP_SECONDS = 2.0
"""Seconds that calls of a restored shard wait until it has the entries of its journal."""
OnChange = Callable[[FileChange], Awaitable[None]]


class JournalContact:
    """Whether a replica has stored all entries of its journal, as of its last contact."""

    def __init__(self) -> None:
        self.is_current = False
        """Whether the replica is in contact with the journal, and lacks no entry."""
        self._settled = asyncio.Event()

    def record(self, behind: int | None) -> None:
        """Records how many entries the replica lacks; None if the journal cannot be followed."""
        self.is_current = behind == 0
        if not behind:
            self._settled.set()

    async def wait(self, seconds: float) -> None:
        """Returns once the replica has caught up for the first time, or cannot follow the journal.

        Returns after `seconds` in any case.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._settled.wait()
        except TimeoutError:
            return


class ShardWritePath:
    """The write path of a served shard.

    The writer is the shard itself, or a `JournaledShard` that publishes writes to a journal first.
    """

    def __init__(
        self,
        *,
        journal: str,
        shard: LiveShard,
        info: ShardInfo,
        encoding_fingerprint: str,
        metrics: JournalMetrics | None = None,
        skew: float = SKEW,
        on_entry: Callable[[], None] = lambda: None,
    ) -> None:
        """`journal` is a URL, empty for none; `skew` is passed to `open_journal`.

        `metrics` is needed for a journal. `on_entry` is called after each entry that was stored.

        Raises UnavailableError if the package of the journal's client is not installed.
        """
        self._shard = shard
        self._writer: JournaledShard | None = None
        self._task: asyncio.Task[None] | None = None
        self._on_change: OnChange | None = None
        self._contact, self._on_entry = JournalContact(), on_entry
        if not journal:
            return
        assert metrics is not None  # the caller has a journal
        built = root_of(info.shard, info.shards)
        self._journal = open_journal(journal, info.index_id, built, skew)
        messages = JournalMessages(info.index_id, built, info.shard, encoding_fingerprint)
        self._writer = JournaledShard(self._journal, shard, messages, OutstandingPublishes(skew))
        shard.publish_split = self._writer.publish_split
        self._follower = JournalFollower(
            journal=self._journal,
            replica=shard,
            decode=messages.decode,
            on_applied=partial(self._deliver_result, self._writer),
            metrics=metrics,
            on_fault=self._writer.set_fault,
            on_contact=self._contact.record,
        )

    def start(self, on_change: OnChange) -> CountingShardWriter:
        """Starts to follow the journal, if there is one; returns the writer.

        If the shard can no longer follow the journal, `on_change` is called with the reason. The
        shard then stays stale until an operator repairs it.
        """
        self._on_change = on_change
        if self._writer is not None:
            self.follow_journal()
            return self._writer
        if self._shard.follows_journal:
            _log.warning("writes are refused", reason=direct_write_refusal(self._shard.log_id))
        return self._shard

    @property
    def is_current(self) -> bool:
        """Whether the shard has all entries of its journal; True without a journal."""
        return self._writer is None or self._contact.is_current

    async def catch_up(self) -> None:
        """Returns once the shard has the present entries of its journal.

        Returns after two seconds in any case, and at once if the journal cannot be followed.
        """
        if self._task is not None:
            await self._contact.wait(_CATCH_UP_SECONDS)

    @property
    def copied(self) -> TakesCopies:
        """Takes the writes of another index of which this shard's index is a copy."""
        return self._writer or self._shard

    @property
    def closed_since(self) -> int:
        """Version of the catalog since which front nodes are refused; 0 if they are not."""
        return (self._writer or self._shard).closed_since

    async def close_to_fronts(self, closing: Closing) -> None:
        """Refuses writes of front nodes as `closing` says, or takes them again.

        With a journal, `closed_since` is set later. Raises UnavailableError if the node is leaving.
        """
        if self._writer is not None:
            self._writer.close_to_fronts(closing)
        else:
            await self._shard.close_to_fronts(closing)

    async def move_away(self) -> None:
        """Makes a replica of a journal refuse writes, because it is about to be removed.

        Returns when no write of it can arrive any more. `stay` undoes it.
        """
        if self._writer is not None:
            await self._writer.move_away()

    def stay(self) -> None:
        """Undoes `move_away`."""
        if self._writer is not None:
            self._writer.stay()

    def follow_journal(self) -> None:
        """Follows the journal, if there is one and the shard takes its writes.

        Call it again once a half has taken the writes over.
        """
        if self._writer is None or self._task is not None or not self._shard.takes_writes:
            return
        assert self._on_change is not None  # set by `start`
        self._task = asyncio.create_task(self._follow_journal(self._writer, self._on_change))

    async def close(self) -> None:
        """Stores waiting writes, and closes the journal and the shard."""
        if self._writer is not None:
            if self._task is not None:
                await cancel_and_wait(self._task)
            self._writer.start_leaving()
            await self._journal.close()
        await self._shard.close()

    def _deliver_result(
        self, writer: JournaledShard, entry: JournalEntry, result: list[Written] | Exception
    ) -> None:
        self._on_entry()
        writer.deliver_result(entry, result)

    async def _follow_journal(self, writer: JournaledShard, on_change: OnChange) -> None:
        try:
            await self._follower.run()
            writer.end_for_halves()
        except Exception as error:  # noqa: BLE001 (no other code would notice the failure)
            reason = str(error) or repr(error)
            known = isinstance(error, WinnowError)
            _log.error(
                "following the journal stopped", reason=reason, exc_info=None if known else error
            )
            self._contact.record(None)
            writer.stop_following(reason)
            await on_change(FileChange(reason, readable=True))


async def cancel_and_wait(task: "asyncio.Task[Any]", interval: float = _CANCEL_INTERVAL) -> None:
    """Cancels a task every `interval` seconds until it has ended, and ignores its result.

    One cancellation is not enough: up to Python 3.11, `asyncio.wait_for` loses a cancellation that
    arrives together with the awaited result.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=interval)
