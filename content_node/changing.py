"""What a node does when the files of its shard change under it."""

import structlog

from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.servicer import ShardServicer
from winnow.content_node.shard.changes import Change
from winnow.rpc.server import Server

_log = structlog.get_logger("content_node")


class Changing:
    """Says NOT_SERVING, with the reason, while what is on disk is not what is served."""

    def __init__(self, servicer: ShardServicer, server: Server, metrics: NodeMetrics) -> None:
        self._servicer, self._server, self._metrics = servicer, server, metrics
        self._files: Change | None = None
        self._for_good: Change | None = None

    async def tell(self, change: Change | None) -> None:
        """From now on this is so; None where all is as it was loaded.

        What is open can be read on unless it was written over: fronts take the node for gone, and
        the calls that they have in hand are answered.
        """
        if change is None:
            _log.info("the files of the shard are there again")
        else:
            _log.error("the shard changed on disk", reason=change.reason)
        self._files = change
        await self._say()

    async def tell_for_good(self, change: Change) -> None:
        """From now on this is so, whatever becomes of the files."""
        _log.error("the shard is not kept up to date any more", reason=change.reason)
        self._for_good = change
        await self._say()

    async def _say(self) -> None:
        change = self._files or self._for_good
        self._servicer.withdraw(change.reason if change else "")
        if change is not None and not change.readable:
            self._servicer.fail(change.reason)
        self._metrics.changed.set(change is not None)
        self._metrics.ready.set(change is None)
        await self._server.serving(change is None)
