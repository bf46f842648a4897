"""A replica of a journal whose index is copied, or replaced by its copy, refuses writes."""

import asyncio

import pytest
from fake_journal import FakeJournal
from fake_replica import FakeReplica
from journaled_node import MESSAGES, following
from live_writes import digested, put
from tenacious import LATER, happens

from winnow.content_node.journal.journaled import JournaledShard
from winnow.content_node.journal.outstanding import OutstandingPublishes
from winnow.content_node.live.closing import Closing
from winnow.errors import IdentityError, IndexIsCopyError, WritesHeldError
from winnow.journal.expiry import MAX_PUBLISH_SECONDS


async def test_a_closed_replica_reports_once_its_writes_are_applied() -> None:
    """The other replica, which takes writes longer, is not waited for."""
    journal, one, other = FakeJournal(), FakeReplica(), FakeReplica()
    async with following(journal, one) as first, following(journal, other) as second:
        one.storing.clear()
        sent = asyncio.create_task(first.shard.write([put("sent")], LATER))
        await happens(lambda: bool(journal.entries))
        first.shard.close_to_fronts(Closing(7))
        for refused in (
            first.shard.write([put("late")], LATER),
            first.shard.find_unchanged([digested(put("sent"))], LATER),
        ):
            with pytest.raises(WritesHeldError):
                await refused
        assert first.shard.closed_since == 0
        one.storing.set()
        await sent
        await happens(lambda: first.shard.closed_since == 7)
        assert one.history == ["sent"]
        await second.shard.write([put("later")], LATER)
        first.shard.close_to_fronts(Closing())
        await first.shard.write([put("reopened")], LATER)
        assert one.history == ["sent", "later", "reopened"]


async def test_a_replica_of_a_copy_takes_the_writes_of_its_current_run_only() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    async with following(journal, replica) as node:
        node.shard.close_to_fronts(Closing(7, "docs"))
        await happens(lambda: node.shard.closed_since == 7)
        await node.shard.store_copied([put("a")], 7, LATER)
        assert all(await node.shard.find_unchanged_copied([digested(put("a"))], 7, LATER))
        with pytest.raises(IndexIsCopyError):
            await node.shard.write([put("b")], LATER)
        node.shard.close_to_fronts(Closing(9, "docs"))
        with pytest.raises(IdentityError, match="no writes of run 7 of copying"):
            await node.shard.store_copied([put("b")], 7, LATER)
    assert replica.history == ["a"]


async def test_a_replica_that_moves_away_waits_for_a_cancelled_write_until_it_has_expired() -> None:
    """Its entry may have been sent, so that the journal may store it until then."""
    now, slept = 100.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    journal = FakeJournal()
    outstanding = OutstandingPublishes(1.0, now=lambda: now, sleep=sleep)
    shard = JournaledShard(journal, FakeReplica(), MESSAGES, outstanding)
    await outstanding.wait()
    assert slept == [MAX_PUBLISH_SECONDS + 1.0]  # an earlier process may have published
    await journal.cut_off()
    sent = asyncio.create_task(shard.write([put("sent")], LATER))
    await happens(lambda: not outstanding.is_idle)
    sent.cancel()
    await asyncio.wait([sent])
    await shard.move_away()
    assert slept[1:] == [MAX_PUBLISH_SECONDS + 1.0]
    with pytest.raises(Exception, match="moves to another node"):
        await shard.write([put("late")], LATER)
    shard.stay()
    journal.join()
    again = asyncio.create_task(shard.write([put("again")], LATER))
    await happens(lambda: bool(journal.entries))
    again.cancel()
