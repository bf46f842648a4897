"""Replicas that follow a journal in a real NATS server."""

import asyncio
import signal
from collections.abc import AsyncIterator
from functools import partial

import pytest
from fake_replica import FakeReplica
from journaled_node import MESSAGES, JournaledNode, following
from live_writes import delete, put
from nats_server import NatsServer, needs_nats
from tenacious import LONG, available, happens

from winnow.deadline import Deadline
from winnow.domain.write import Outcome
from winnow.errors import UnavailableError
from winnow.journal.journal import Journal, PublishedEntry
from winnow.journal.opening import open_journal

pytestmark = needs_nats


@pytest.fixture
async def journals(nats_server: NatsServer) -> AsyncIterator[tuple[Journal, Journal]]:
    """As two nodes have them."""
    journals = (
        open_journal(nats_server.url, "index", 0),
        open_journal(nats_server.url, "index", 0),
    )
    yield journals
    for journal in journals:
        await journal.close()


async def write(node: JournaledNode, *identifiers: str) -> int:
    """Puts passages, and deletes one; the number of the last write."""
    writes = [*(put(each, f"text of {each}") for each in identifiers), delete(identifiers[0])]
    written = await available(lambda: node.shard.write(writes, Deadline.after(LONG)), LONG)
    assert {each.outcome for each in written} <= {Outcome.STORED, Outcome.UNCHANGED}
    return written[-1].sequence


async def test_a_write_to_one_replica_is_soon_in_the_other(
    journals: tuple[Journal, Journal],
) -> None:
    one, other = FakeReplica(), FakeReplica()
    async with following(journals[0], one) as first, following(journals[1], other):
        last = await write(first, "a", "b", "c")
        await happens(lambda: len(other.history) == last, LONG)
    assert (one.texts, one.history) == (other.texts, other.history)


async def test_replicas_are_equal_after_the_server_was_killed_while_both_are_written_to(
    nats_server: NatsServer, journals: tuple[Journal, Journal]
) -> None:
    one, other = FakeReplica(), FakeReplica()
    async with following(journals[0], one) as first, following(journals[1], other) as second:
        await write(first, "a")
        feeding = [
            asyncio.create_task(write(node, f"{n}-x", f"{n}-y", "both"))
            for n in range(20)
            for node in (first, second)
        ]
        await happens(lambda: any(task.done() for task in feeding), LONG)
        nats_server.stop(signal.SIGKILL)
        nats_server.start()
        for task in feeding:
            await task
        await happens(lambda: one.journal_position == other.journal_position, LONG)
    assert {f"{n}-y" for n in range(20)} <= one.texts.keys()
    assert (one.texts, one.history) == (other.texts, other.history)


async def test_a_replica_that_was_away_stores_what_it_missed_and_nothing_twice(
    journals: tuple[Journal, Journal],
) -> None:
    one, other = FakeReplica(), FakeReplica()
    async with following(journals[0], one) as first:
        async with following(journals[1], other):
            last = await write(first, "a", "b")
            await happens(lambda: len(other.history) == last, LONG)
        for n in range(50):
            last = await write(first, f"{n}", "again")
        async with following(journals[1], other) as second:
            await happens(lambda: len(other.history) == last, LONG)
            await happens(lambda: second.metric("behind_entries") == 0, LONG)
    assert (one.texts, one.history, one.journal_position) == (
        other.texts,
        other.history,
        other.journal_position,
    )


@pytest.mark.usefixtures("late_expiry")
async def test_an_entry_that_is_sent_twice_is_stored_once(
    journals: tuple[Journal, Journal],
) -> None:
    """As after an acknowledgement that was lost."""
    replica = FakeReplica()
    contents = [next(iter(MESSAGES.encode([put("a", text)], 10_000))) for text in ("old", "new")]
    acknowledged = [
        await available(partial(journals[0].publish, content, key, Deadline.after(LONG)))
        for key, content in (("1", contents[0]), ("2", contents[1]), ("1", contents[0]))
    ]
    assert acknowledged[2] == PublishedEntry(acknowledged[0].sequence, is_duplicate=True)
    async with following(journals[0], replica) as node:
        await write(node, "b", "c")
    assert replica.texts["a"] == "new"
    assert replica.history[:2] == ["a", "a"]


async def test_a_replica_starts_before_its_journal_does(
    nats_server: NatsServer, journals: tuple[Journal, Journal]
) -> None:
    nats_server.stop()
    replica = FakeReplica()
    async with following(journals[0], replica) as node:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            await node.shard.write([put("a")], Deadline.after(LONG))
        nats_server.start()
        await write(node, "a", "b")
    assert replica.texts == {"b": "text of b"}
