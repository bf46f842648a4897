"""A replica that follows a journal, through faults of both."""

import asyncio
from collections.abc import Sequence

import pytest
from fake_journal import FakeJournal
from fake_replica import FakeReplica
from journaled_node import MESSAGES, JournaledNode, following
from live_writes import delete, put
from manual_clock import ManualClock
from structlog.testing import capture_logs
from tenacious import LATER, happens

from winnow.content_node.journal.journaled import JournaledShard
from winnow.content_node.journal.messages import JournalMessages
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.write import Outcome, Write, WriteAttempt, Written
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    InvalidRequestError,
    LeavingError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
)
from winnow.journal.journal import JournalEntry
from winnow.passages.canonical import PassageDigest, digest

SKIPPED = "expired entries of the journal were skipped"


def stored(replica: FakeReplica) -> int:
    """The place of its last entry."""
    return int(replica.journal_position.split(" ")[0] or 0)


async def publish(journal: FakeJournal, *batches: list[Write]) -> None:
    for number, batch in enumerate(batches):
        for content in MESSAGES.encode(batch, journal.max_bytes):
            await journal.publish(content, f"{len(journal.entries)}-{number}", LATER)


async def test_a_caller_gets_the_result_of_each_write() -> None:
    async with following(FakeJournal(), FakeReplica()) as node:
        written = await node.shard.write([put("a", "one"), put("b"), put("a", "one")], LATER)
        assert [each.outcome for each in written] == [
            Outcome.STORED,
            Outcome.STORED,
            Outcome.UNCHANGED,
        ]
        assert [each.sequence for each in written] == [1, 2, 2]
        assert (await node.shard.changes(LATER)).sequence == 2


async def test_replicas_end_with_the_same_whichever_of_them_is_written_to() -> None:
    journal, one, other = FakeJournal(), FakeReplica(), FakeReplica()
    async with following(journal, one) as first, following(journal, other) as second:
        writes = [
            asyncio.create_task(node.shard.write([put(name, f"{name} {n}"), delete("a")], LATER))
            for n, name in enumerate("abcabcab")
            for node in (first, second)
        ]
        told = [await write for write in writes]
        await happens(lambda: stored(one) == stored(other) == len(journal.entries))
        sequences = {each.sequence for written in told for each in written}
        assert max(sequences) == len(one.history)
    assert (one.texts, one.history) == (other.texts, other.history)


async def test_all_attempts_of_a_call_publish_entries_with_the_same_keys() -> None:
    """So the journal drops a copy of a failed attempt that arrives after a later attempt."""
    journal = FakeJournal()
    async with following(journal, FakeReplica()) as one, following(journal, FakeReplica()) as other:
        await one.shard.write([put("a", "old")], LATER, WriteAttempt("call"))
        await other.shard.write([put("b")], LATER)
        (again,) = await other.shard.write([put("a", "old")], LATER, WriteAttempt("call", 1))
    assert again == Written(Outcome.UNCHANGED, 2)
    keys = [entry.key for entry in journal.entries]
    assert (keys[0], keys[2]) == ("call.0+0", "call.0+1")


async def test_an_attempt_that_arrives_after_a_later_one_undoes_no_newer_write() -> None:
    """A replica that was cut off gets the first attempt, after another one has taken the second."""
    journal, replica = FakeJournal(), FakeReplica()
    async with following(journal, replica) as one, following(journal, FakeReplica()) as other:
        await other.shard.write([put("a", "old")], LATER, WriteAttempt("call", 1))
        await other.shard.write([put("a", "new")], LATER)
        with pytest.raises(UnavailableError, match="a later attempt"):
            await one.shard.write([put("a", "old")], LATER, WriteAttempt("call"))
        await happens(lambda: stored(replica) == 2)
    assert (replica.texts, len(journal.entries)) == ({"a": "new"}, 2)


async def test_a_replica_goes_on_where_it_was() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    await publish(journal, [put("a")], [put("b")])
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 2)
    await publish(journal, [put("c")])
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 3)
    assert journal.reads == [0, 2]
    assert replica.history == ["a", "b", "c"]


async def test_a_replica_that_was_cut_off_catches_up_and_says_by_how_much_it_lags() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    async with following(journal, replica) as node:
        await publish(journal, [put("a")])
        await happens(lambda: node.metric("followed") == 1)
        await journal.cut_off()
        await happens(lambda: node.metric("followed") == 0)
        journal.join()
        replica.full = True
        await publish(journal, *([put(f"id-{n}")] for n in range(10)))
        replica.full = False
        await happens(lambda: stored(replica) == 11)
        await happens(lambda: node.metric("behind_entries") == 0)
        assert node.metric("followed") == 1
        assert node.metric("place") == 11
        assert node.metric("entries_total") == 11
    assert replica.history == ["a", *(f"id-{n}" for n in range(10))]


async def test_a_replica_without_room_waits_for_it() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    async with following(journal, replica) as node:
        await node.shard.write([put("a")], LATER)
        replica.full = True
        writing = asyncio.create_task(node.shard.write([put("b")], LATER))
        await happens(lambda: node.metric("followed") == 0)
        replica.full = False
        assert [each.sequence for each in await writing] == [2]


async def test_a_write_that_was_on_its_way_when_the_replica_ended_is_refused_at_once() -> None:
    class Ending(FakeReplica):
        async def check_writes(self, writes: Sequence[Write]) -> None:
            shard.stop_following("it was made again")

    journal = FakeJournal()
    shard = JournaledShard(journal, Ending(), MESSAGES)
    with pytest.raises(NotWritableError, match="it was made again"):
        await shard.write([put("a")], LATER)
    assert not journal.entries


async def test_entries_that_wait_share_a_transaction() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    await publish(journal, *([put(f"id-{n}")] for n in range(9)))
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 9)
    assert replica.commits <= 1 + 3  # where it begins, and three deliveries of three entries


async def test_entries_that_have_no_room_together_are_stored_one_by_one() -> None:
    journal, replica = FakeJournal(), FakeReplica(max_writes=2)
    await publish(journal, *([put(f"id-{n}"), put(f"other-{n}")] for n in range(4)))
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 4)
    assert len(replica.history) == 8


async def test_only_entries_that_no_shard_can_store_are_skipped() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    other = JournalMessages("index", 1, 1, "encoding")
    await publish(journal, [put("a")])
    await journal.publish(next(iter(other.encode([put("x")], 100_000))), "other", LATER)
    await journal.publish(b"\xff nonsense", "nonsense", LATER)
    await publish(journal, [put("poison")], [put("b")])
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 5)
    assert replica.history == ["a", "b"]


async def test_writes_that_the_shard_refuses_are_not_published() -> None:
    journal = FakeJournal()
    async with following(journal, FakeReplica()) as node:
        with pytest.raises(InvalidRequestError):
            await node.shard.write([put("odd")], LATER)
    assert journal.entries == []


async def test_a_late_write_is_an_error_and_may_be_stored() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    replica.storing.clear()
    async with following(journal, replica) as node:
        soon = Deadline.after(0.05, ManualClock())
        with pytest.raises(DeadlineExceededError, match="the journal has the writes"):
            await node.shard.write([put("a")], soon)
        replica.storing.set()
        await happens(lambda: replica.history == ["a"])


async def test_a_replica_that_does_not_hear_from_its_journal_refuses_writes_at_once() -> None:
    journal = FakeJournal()
    async with following(journal, FakeReplica()) as node:
        await journal.cut_off()
        await happens(lambda: node.metric("followed") == 0)
        with pytest.raises(
            UnavailableError, match="does not keep up with its journal: out of reach"
        ):
            await node.shard.write([put("a")], LATER)
        assert not journal.entries
        journal.join()
        await happens(lambda: node.metric("followed") == 1)
        assert await node.shard.write([put("b")], LATER)


async def test_a_replica_that_cannot_store_leaves_writes_to_another_at_once() -> None:
    """Or the front would go on with it, and every write would be published and then be too late."""
    journal, full, other = FakeJournal(), FakeReplica(), FakeReplica()
    async with following(journal, full) as first, following(journal, other) as second:
        await second.shard.write([put("a")], LATER)
        await happens(lambda: stored(full) == 1)
        full.full = True
        await second.shard.write([put("b")], LATER)
        await happens(lambda: first.metric("followed") == 0)
        with pytest.raises(UnavailableError, match="does not keep up with its journal: no room"):
            await first.shard.write([put("c")], LATER)
        assert len(journal.entries) == 2
        assert await second.shard.write([put("c")], LATER)
        full.full = False
        await happens(lambda: first.metric("followed") == 1)
        assert await first.shard.write([put("d")], LATER)
        assert full.history == ["a", "b", "c", "d"]


async def test_a_replica_with_too_much_to_merge_says_when_to_try_again() -> None:
    """As one without a journal: its feeders slow down, and do not go to another replica."""

    class Behind(FakeReplica):
        async def check_writes(self, writes: Sequence[Write]) -> None:
            raise OverloadedError("not merged yet", 2.0)

    journal = FakeJournal()
    await publish(journal, [put("a")])
    async with following(journal, Behind(full=True)) as node:
        await happens(lambda: node.metric("followed") == 0)
        with pytest.raises(OverloadedError, match="not merged yet"):
            await node.shard.write([put("b")], LATER)


async def test_expired_entries_are_skipped_by_all_replicas_and_counted() -> None:
    journal, one, other = FakeJournal(), FakeReplica(), FakeReplica()
    await publish(journal, [put("a", "new")])
    journal.is_late = True
    await publish(journal, [put("a", "old")], [delete("a")])
    journal.is_late = False
    await publish(journal, [put("b")])
    async with following(journal, one) as first, following(journal, other) as second:
        await happens(lambda: stored(one) == stored(other) == 4)
        assert one.texts["a"] == other.texts["a"] == "new"
        assert one.history == other.history == ["a", "b"]
        for node in (first, second):
            assert node.metric("expired_entries_total") == 2
            assert node.metric("entries_total") == 4


async def test_a_write_whose_entry_expired_is_not_acknowledged() -> None:
    """The journal acknowledges it, and all replicas skip it."""
    journal, replica = FakeJournal(), FakeReplica()
    journal.is_late = True
    async with following(journal, replica) as node:
        with pytest.raises(UnavailableError, match=r"after they had expired.*compare the clocks"):
            await node.shard.write([put("a")], LATER)
    assert stored(replica) == 1
    assert replica.history == []


async def test_expired_entries_are_logged_once_for_each_delivery() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    journal.is_late = True
    await publish(journal, [put("a")], [put("b")], [put("c")])
    with capture_logs() as logs:
        async with following(journal, replica):
            await happens(lambda: stored(replica) == 3)
    assert [each["event"] for each in logs].count(SKIPPED) == 1


async def test_expired_entries_are_counted_once_over_all_tries() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    with capture_logs() as logs:
        async with following(journal, replica) as node:
            await happens(lambda: replica.log_id != "")
            replica.full = journal.is_late = True
            await publish(journal, [put("a")])
            await happens(lambda: len(journal.reads) > 5)
            replica.full = False
            await happens(lambda: stored(replica) == 1)
            assert node.metric("expired_entries_total") == 1
    assert [each["event"] for each in logs].count(SKIPPED) == 1


async def test_writes_that_wait_when_the_node_leaves_are_taken_by_another_replica() -> None:
    """It is no fault of the set-up, as FAILED_PRECONDITION would say."""
    journal, replica = FakeJournal(), FakeReplica(full=True)
    shard = JournaledNode(journal, replica).shard
    writing = asyncio.create_task(shard.write([put("a")], LATER))
    await happens(lambda: bool(journal.entries))
    shard.start_leaving()
    with pytest.raises(LeavingError):
        await writing
    with pytest.raises(LeavingError, match="the node is leaving"):
        await shard.write([put("b")], LATER)


async def test_a_caller_that_gives_up_leaves_nothing_behind() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    replica.storing.clear()
    async with following(journal, replica) as node:
        writing = asyncio.create_task(node.shard.write([put("a")], LATER))
        await happens(lambda: bool(journal.entries))
        writing.cancel()
        await asyncio.wait([writing])
        replica.storing.set()
        await happens(lambda: replica.history == ["a"])
        assert await node.shard.write([put("b")], LATER)


async def test_another_journal_ends_it_and_fails_all_waiting_calls() -> None:
    journal = FakeJournal()
    node = JournaledNode(journal, FakeReplica(journal_position="7 key"))
    with pytest.raises(IdentityError, match="another journal"):
        await node.follower.run()
    writing = asyncio.create_task(node.shard.write([put("a")], LATER))
    await happens(lambda: bool(journal.entries))
    node.shard.stop_following("another journal")
    with pytest.raises(NotWritableError, match="another journal"):
        await writing
    with pytest.raises(NotWritableError, match="no longer follows its journal: another journal"):
        await node.shard.write([put("b")], LATER)


async def test_a_journal_that_was_created_again_is_not_followed() -> None:
    journal, replica = FakeJournal(), FakeReplica()
    await publish(journal, [put("a")])
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 1)
    assert replica.log_id == journal.id
    journal.id = "journal-2"
    with pytest.raises(IdentityError, match="not the journal that this shard has followed"):
        await JournaledNode(journal, replica).follower.run()


async def test_a_journal_that_lost_acknowledged_entries_is_not_followed() -> None:
    """As after a loss of power where entries are not synced; the place has another entry now."""
    journal, replica = FakeJournal(), FakeReplica()
    await publish(journal, [put("a")], [put("b")])
    async with following(journal, replica):
        await happens(lambda: stored(replica) == 2)
    journal.entries.pop()
    await publish(journal, [put("c")], [put("d")])
    journal.entries[1] = JournalEntry(2, "another", journal.entries[1].content)
    with pytest.raises(IdentityError, match="another entry"):
        await JournaledNode(journal, replica).follower.run()


async def test_a_shard_that_was_written_to_before_is_not_one_of_several_replicas() -> None:
    journal, replica = FakeJournal(), FakeReplica(log_id="own")
    with pytest.raises(IdentityError, match="took writes before it followed a journal"):
        await JournaledNode(journal, replica).follower.run()
    assert replica.journal_position == ""


async def test_many_writes_are_cut_into_entries_that_the_journal_takes() -> None:
    journal, replica = FakeJournal(max_bytes=1_000), FakeReplica()
    async with following(journal, replica) as node:
        written = await node.shard.write([put(f"id-{n}") for n in range(50)], LATER)
        assert [each.sequence for each in written] == list(range(1, 51))
        with pytest.raises(
            InvalidRequestError, match=r"writes\[1\]: it has .* a journal entry takes"
        ):
            await node.shard.write([put("a"), put("b", "long " * 500)], LATER)
    assert max(len(entry.content) for entry in journal.entries) <= 1_000
    assert 5 < len(journal.entries) < 50


def test_writes_are_read_as_they_were_published() -> None:
    writes = [put("a", "one", 7), delete("b"), delete("c", 0)]
    (content,) = MESSAGES.encode(writes, 100_000)
    read = MESSAGES.decode(content).writes
    assert [(each.id, each.version) for each in read] == [("a", 7), ("b", None), ("c", 0)]
    assert read[0].put is not None
    assert read[0].put.passage.text == "one"


async def test_puts_are_unchanged_by_writes_that_any_replica_acknowledged() -> None:
    """A replica that lags behind would else call unchanged what a later write has replaced."""
    journal, one, other = FakeJournal(), FakeReplica(), FakeReplica()
    async with following(journal, one) as first, following(journal, other) as second:
        await first.shard.write([put("a", "one")], LATER)
        await happens(lambda: other.texts == {"a": "one"})
        other.storing.clear()
        await first.shard.write([put("a", "two")], LATER)
        asking = asyncio.create_task(second.shard.find_unchanged([digest_of("a", "one")], LATER))
        await happens(lambda: len(journal.entries) == 3)
        assert not asking.done()
        other.storing.set()
        assert await asking == [None]
        assert await second.shard.find_unchanged([digest_of("a", "two")], LATER) == [
            Written(Outcome.UNCHANGED, 2)
        ]
    assert one.history == other.history


async def test_an_unchanged_put_of_a_tenant_has_its_own_number_in_all_replicas() -> None:
    """Equal numbers would tell a tenant that no other one wrote meanwhile."""
    journal, one, other = FakeJournal(), FakeReplica(), FakeReplica()
    async with following(journal, one) as first, following(journal, other) as second:
        await first.shard.write([put("acme\x1fa", "one")], LATER)
        asked = [digest_of("acme\x1fa", "one"), digest_of("acme\x1fb", "new")]
        assert await first.shard.find_unchanged(asked, LATER) == [
            Written(Outcome.UNCHANGED, 2),
            None,
        ]
        await happens(lambda: len(other.history) == 2)
        assert await second.shard.find_unchanged(asked[:1], LATER) == [
            Written(Outcome.UNCHANGED, 3)
        ]
    assert one.history == ["acme\x1fa", "acme\x1f", "acme\x1f"]


async def test_the_journal_is_not_asked_about_new_passages() -> None:
    journal = FakeJournal()
    async with following(journal, FakeReplica()) as node:
        assert await node.shard.find_unchanged([digest_of("a", "new")], LATER) == [None]
    assert journal.entries == []


async def test_without_its_journal_a_replica_reports_no_put_as_unchanged() -> None:
    journal = FakeJournal()
    async with following(journal, FakeReplica()) as node:
        await node.shard.write([put("a", "one")], LATER)
        await journal.cut_off()
        with pytest.raises(DeadlineExceededError):
            await node.shard.find_unchanged([digest_of("a", "one")], Deadline.after(0.01))
        journal.join()


def digest_of(name: str, text: str) -> PassageDigest:
    return PassageDigest(name, None, digest(Passage(name, "Title", text)))
