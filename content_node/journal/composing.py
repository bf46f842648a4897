"""A served shard that follows a journal, put together."""

from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import CollectorRegistry

from content_node.journal.following import Follower
from content_node.journal.journaled import JournaledShard
from content_node.journal.messages import JournalMessages
from content_node.journal.metrics import JournalMetrics
from content_node.live.shard import LiveShard
from content_node.shard.changes import Change
from winnow.domain.shard import ShardInfo
from winnow.journal.opening import open_journal

_log = structlog.get_logger("content_node")
Tell = Callable[[Change | None], Awaitable[None]]


class FollowedShard:
    """What takes the shard's writes, and a task that brings those of its journal."""

    def __init__(
        self,
        url: str,
        shard: LiveShard,
        info: ShardInfo,
        encoding_fingerprint: str,
        registry: CollectorRegistry,
    ) -> None:
        """Raises UnavailableError if the client's package is not installed."""
        self._journal = open_journal(url, info.index_id, info.shard)
        messages = JournalMessages(info.index_id, info.shard, encoding_fingerprint)
        self.writer = JournaledShard(self._journal, shard, shard.admit, messages)
        metrics = JournalMetrics(registry)
        self._follower = Follower(self._journal, shard, messages.decoded, self.writer.told, metrics)

    async def follow(self, tell: Tell) -> None:
        """Follows until it is cancelled. If it cannot go on, that is told as a change of the shard:
        what is served grows old, and only whoever sets it right can help.
        """
        try:
            await self._follower.run()
        except Exception as error:  # noqa: BLE001 (nobody else would notice)
            reason = str(error) or repr(error)
            _log.exception("the journal is not followed any more", reason=reason)
            self.writer.end(reason)
            await tell(Change(reason, readable=True))

    async def close(self) -> None:
        """Disconnects."""
        await self._journal.close()
