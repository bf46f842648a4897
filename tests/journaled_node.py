"""A fake replica that follows a journal, with a node's real follower."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fake_replica import FakeReplica
from prometheus_client import CollectorRegistry
from tenacious import turn

from winnow.content_node.journal.composing import cancel_and_wait
from winnow.content_node.journal.following import JournalFollower
from winnow.content_node.journal.journaled import JournaledShard
from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.journal.outstanding import OutstandingPublishes
from winnow.journal.expiry import MAX_PUBLISH_SECONDS
from winnow.journal.journal import Journal

MESSAGES = JournalMessages("index", 0, 0, "encoding")


class JournaledNode:
    """A replica and the parts that follow the journal."""

    def __init__(self, journal: Journal, replica: FakeReplica) -> None:
        self.registry = CollectorRegistry()
        self.replica = replica
        self.outstanding = OutstandingPublishes(-MAX_PUBLISH_SECONDS)  # nothing was sent before
        self.shard = JournaledShard(journal, replica, MESSAGES, self.outstanding)
        self.follower = JournalFollower(
            journal=journal,
            replica=replica,
            decode=MESSAGES.decode,
            on_applied=self.shard.deliver_result,
            metrics=JournalMetrics(self.registry),
            sleep=lambda _: turn(),
            on_fault=self.shard.set_fault,
        )

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"winnow_node_journal_{name}")


@asynccontextmanager
async def following(journal: Journal, replica: FakeReplica) -> AsyncIterator[JournaledNode]:
    node = JournaledNode(journal, replica)
    task = asyncio.create_task(node.follower.run())
    try:
        yield node
    finally:
        await cancel_and_wait(task)
        if not task.cancelled():
            task.result()
