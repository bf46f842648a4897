"""A write that failed never comes back to undo a newer one that was acknowledged."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_replica import FakeReplica
from faulty_link import FaultyLink, link_to
from journaled_node import JournaledNode, following
from live_writes import delete, put
from nats_server import NatsServer, needs_nats
from tenacious import LONG, available, happens

from winnow.deadline import Deadline
from winnow.domain.write import Write
from winnow.errors import DeadlineExceededError, UnavailableError
from winnow.journal import expiry
from winnow.journal.journal import PublishedEntry
from winnow.journal.opening import open_journal

pytestmark = [needs_nats, pytest.mark.usefixtures("late_expiry")]
SHORT = 2.0


@asynccontextmanager
async def node_at(url: str) -> AsyncIterator[JournaledNode]:
    journal = open_journal(url, "index", 0)
    try:
        async with following(journal, FakeReplica()) as node:
            yield node
    finally:
        await journal.close()


async def write(node: JournaledNode, write: Write) -> None:
    await available(lambda: node.shard.write([write], Deadline.after(LONG)), LONG)


async def fail(node: JournaledNode, write: Write) -> None:
    with pytest.raises((DeadlineExceededError, UnavailableError)):
        await node.shard.write([write], Deadline.after(SHORT))


async def fail_frozen(
    node: JournaledNode, link: FaultyLink, write: Write, patch: pytest.MonkeyPatch
) -> None:
    """Freezes the link just before the node publishes, and expects the write to fail."""
    journal, sent = node.shard._journal, list[str]()
    publish = journal.publish

    async def freeze_and_publish(content: bytes, key: str, *given: Any) -> PublishedEntry:
        sent.append(key)
        link.freeze()
        return await publish(content, key, *given)

    with patch.context() as patched:
        patched.setattr(journal, "publish", freeze_and_publish)
        patched.setattr(expiry, "MAX_PUBLISH_SECONDS", 1.0)
        while not sent:
            await happens(lambda: node.metric("followed") == 1)
            with pytest.raises((DeadlineExceededError, UnavailableError)):
                await node.shard.write([write], Deadline.after(LONG))


@pytest.mark.parametrize("failing", [put("a", "old"), delete("a")], ids=["put", "delete"])
async def test_a_write_that_failed_while_cut_off_is_not_sent_after_reconnecting(
    nats_server: NatsServer, failing: Write
) -> None:
    """The client buffers what it could not send, unless it is told not to."""
    async with (
        link_to(nats_server.url) as link,
        node_at(link.url) as one,
        node_at(nats_server.url) as other,
    ):
        await write(one, put("a", "first"))
        await link.cut()
        await happens(lambda: one.metric("followed") == 0, LONG)
        await fail(one, failing)
        await write(other, put("a", "new"))
        await link.join()
        await write(one, put("end", "end"))
        await expect_new(one, other)
        assert one.metric("expired_entries_total") == 0


@pytest.mark.parametrize("failing", [put("a", "old"), delete("a")], ids=["put", "delete"])
async def test_a_write_that_failed_on_a_frozen_link_is_skipped_by_all_when_it_arrives(
    nats_server: NatsServer, failing: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        link_to(nats_server.url) as link,
        node_at(link.url) as one,
        node_at(nats_server.url) as other,
    ):
        await write(one, put("a", "first"))
        await fail_frozen(one, link, failing, monkeypatch)
        await write(other, put("a", "new"))
        link.thaw()
        await write(one, put("end", "end"))
        await expect_new(one, other)
        for node in (one, other):
            assert node.metric("expired_entries_total") == 1


async def expect_new(*nodes: JournaledNode) -> None:
    """All end with the newer write."""
    for node in nodes:
        replica = node.replica
        await happens(lambda replica=replica: "end" in replica.texts, LONG)  # type: ignore[misc]
        assert replica.texts["a"] == "new"
        assert replica.history == nodes[0].replica.history
