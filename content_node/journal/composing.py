"""A served shard that takes writes, directly or through the journal that it follows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from winnow.content_node.journal.following import Follower
from winnow.content_node.journal.journaled import JournaledShard
from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.limits import no_direct_writes
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.shard.changes import Change
from winnow.domain.shard import ShardInfo
from winnow.journal.expiry import SKEW
from winnow.journal.opening import open_journal
from winnow.shard_writer import ShardWriter

_log = structlog.get_logger("content_node")
_CANCEL_AGAIN = 0.25
"""Seconds until a task that goes on is cancelled again."""
Tell = Callable[[Change], Awaitable[None]]


class FedShard:
    """A served shard and its writer: the shard itself, or the journal that it follows."""

    def __init__(
        self,
        *,
        journal: str,
        shard: LiveShard,
        info: ShardInfo,
        encoding_fingerprint: str,
        registry: CollectorRegistry,
        skew: float = SKEW,
    ) -> None:
        """`journal` is a URL, empty for none; `skew` is that of `open_journal`.

        Raises UnavailableError if the package of the journal's client is not installed.
        """
        self._shard = shard
        self._writer: JournaledShard | None = None
        self._task: asyncio.Task[None] | None = None
        if not journal:
            return
        self._journal = open_journal(journal, info.index_id, info.shard, skew)
        messages = JournalMessages(info.index_id, info.shard, encoding_fingerprint)
        self._writer = JournaledShard(self._journal, shard, messages)
        self._follower = Follower(
            journal=self._journal,
            replica=shard,
            decode=messages.decoded,
            applied=self._writer.applied,
            metrics=JournalMetrics(registry),
            fault=self._writer.fault,
        )

    def start(self, tell: Tell) -> ShardWriter:
        """Begins to follow the journal, if there is one; returns the writer.

        If the journal cannot be followed any more, `tell` is told so as a change of the shard, for
        good: the shard becomes stale until an operator mends it.
        """
        if self._writer is not None:
            self._task = asyncio.create_task(self._follow(self._writer, tell))
            return self._writer
        if self._shard.follows_journal:
            _log.warning("writes are refused", reason=no_direct_writes(self._shard.log_id))
        return self._shard

    async def close(self) -> None:
        """Stores waiting writes, and closes the journal and the shard."""
        if self._writer is not None:
            if self._task is not None:
                await end(self._task)
            self._writer.leave()
            await self._journal.close()
        await self._shard.close()

    async def _follow(self, writer: JournaledShard, tell: Tell) -> None:
        try:
            await self._follower.run()
        except Exception as error:  # noqa: BLE001 (nobody else would notice)
            reason = str(error) or repr(error)
            _log.exception("following the journal stopped", reason=reason)
            writer.end(reason)
            await tell(Change(reason, readable=True))


async def end(task: "asyncio.Task[Any]", again: float = _CANCEL_AGAIN) -> None:
    """Cancels a task until it has ended, and ignores its result.

    Once is not enough: up to Python 3.11, `asyncio.wait_for` loses a cancellation that comes
    together with what it waits for.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=again)
