"""The watch of the journals of archived replicas, with journals that reply slowly."""

import asyncio

from prometheus_client import CollectorRegistry
from virtual_loop import in_virtual_time

from winnow.content_node.archiving.journal_watch import JournalWatch, WatchedReplica
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.journal.journal import JournalEnd

STORED = JournalEnd("journal-1", 1)


class SlowEnds:
    """A `ReadsJournalEnds` whose journals have one more entry, but for silent ones no reply."""

    def __init__(self) -> None:
        self.asked, self.replies, self.closed = (asyncio.Event() for _ in range(3))
        self.silent: set[int] = set()

    async def read(self, index_id: str, shard: int) -> JournalEnd | None:
        self.asked.set()
        if shard in self.silent:
            await self.replies.wait()
        return JournalEnd(STORED.id, STORED.sequence + 1)

    async def close(self) -> None:
        self.closed.set()


def replica(shard: int) -> WatchedReplica:
    return WatchedReplica(
        index_id="index",
        shard=shard,
        end=STORED,
        restore=lambda: None,
        metrics=JournalMetrics(CollectorRegistry()),
    )


@in_virtual_time
async def test_a_reply_about_a_replica_that_was_restored_meanwhile_does_not_count() -> None:
    """The restored replica may have later entries than its stub."""
    ends, watched = SlowEnds(), replica(0)
    ends.silent.add(0)
    watch = JournalWatch(lambda: ends)
    watch.add(watched)
    asked = asyncio.create_task(watch.has_all_entries(watched, 1.0))
    await ends.asked.wait()
    watch.remove(watched)
    ends.replies.set()
    assert await asked is False
    await watch.wait_until_ended()
    assert ends.closed.is_set()


@in_virtual_time
async def test_a_call_does_not_wait_for_a_look_at_many_silent_journals() -> None:
    ends, called = SlowEnds(), replica(99)
    ends.silent.update(range(50))
    watch = JournalWatch(lambda: ends)
    silent = [replica(shard) for shard in range(50)]
    for each in silent:
        watch.add(each)
    assert await watch.has_all_entries(silent[0], 1.0) is None
    watch.add(called)
    assert await watch.has_all_entries(called, 1.0) is False
    for each in (called, *silent):
        watch.remove(each)
    await watch.wait_until_ended()


@in_virtual_time
async def test_looks_go_on_after_an_unexpected_error() -> None:
    ends, watched, restored = SlowEnds(), replica(0), asyncio.Event()
    errors = [ValueError()]

    def restore() -> None:
        if errors:
            raise errors.pop()
        restored.set()

    watched.restore = restore
    watch = JournalWatch(lambda: ends)
    watch.add(watched)
    await restored.wait()
    watch.remove(watched)
    await watch.wait_until_ended()
