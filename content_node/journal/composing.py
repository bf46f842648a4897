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
from winnow.content_node.live.limiting import no_direct_writes
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.shard.changes import Change
from winnow.domain.shard import ShardInfo
from winnow.journal.expiry import SKEW
from winnow.journal.opening import open_journal
from winnow.shard_writer import ShardWriter

_log = structlog.get_logger("content_node")
Tell = Callable[[Change], Awaitable[None]]


class FollowedShard:
    """What takes the shard's writes, and the task that brings those of its journal."""

    def __init__(
        self,
        *,
        url: str,
        shard: LiveShard,
        info: ShardInfo,
        encoding_fingerprint: str,
        registry: CollectorRegistry,
        skew: float = SKEW,
    ) -> None:
        """Raises UnavailableError if the client's package is not installed."""
        self._journal = open_journal(url, info.index_id, info.shard, skew)
        messages = JournalMessages(info.index_id, info.shard, encoding_fingerprint)
        self._writer = JournaledShard(self._journal, shard, messages)
        metrics = JournalMetrics(registry)
        self._follower = Follower(
            journal=self._journal,
            replica=shard,
            decode=messages.decoded,
            told=self._writer.told,
            metrics=metrics,
            heard=self._writer.heard,
        )
        self._task: asyncio.Task[None] | None = None

    def start(self, tell: Tell) -> ShardWriter:
        """Begins to follow; what takes the shard's writes from now on.

        If it cannot go on, that is told as a change of the shard, for good: what is served grows
        old, and only whoever sets it right can help.
        """
        self._task = asyncio.create_task(self._follow(tell))
        return self._writer

    async def close(self) -> None:
        """Follows no more, and disconnects."""
        if self._task is not None:
            await end(self._task)
        self._writer.leave()
        await self._journal.close()

    async def _follow(self, tell: Tell) -> None:
        try:
            await self._follower.run()
        except Exception as error:  # noqa: BLE001 (nobody else would notice)
            reason = str(error) or repr(error)
            _log.exception("the journal is not followed any more", reason=reason)
            self._writer.end(reason)
            await tell(Change(reason, readable=True))


class FedShard:
    """A served shard, and what takes its writes: itself, or the journal that it follows."""

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
        """`journal` is its URL, empty for none; `skew` is that of `open_journal`; raises as
        `FollowedShard`.
        """
        self._shard = shard
        self._followed = (
            FollowedShard(
                url=journal,
                shard=shard,
                info=info,
                encoding_fingerprint=encoding_fingerprint,
                registry=registry,
                skew=skew,
            )
            if journal
            else None
        )

    def start(self, tell: Tell) -> ShardWriter:
        """What takes writes from now on; see `FollowedShard.start`."""
        if self._followed is not None:
            return self._followed.start(tell)
        if self._shard.follows_journal:
            _log.warning("no writes are taken", reason=no_direct_writes(self._shard.log_id))
        return self._shard

    async def close(self) -> None:
        """Stores what waits, and lets go of journal and directory."""
        if self._followed is not None:
            await self._followed.close()
        await self._shard.close()


_AGAIN = 0.25
"""Seconds until a task that goes on is cancelled again."""


async def end(task: "asyncio.Task[Any]", again: float = _AGAIN) -> None:
    """Cancels a task until it is over, whatever it ends with.

    Once is not enough: clients that wait by `asyncio.wait_for` lose a cancellation up to Python
    3.11 if it comes together with what they wait for.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=again)
