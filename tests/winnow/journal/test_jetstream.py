"""A journal in a real NATS server."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import needs
import pytest
from manual_clock import ManualClock
from nats_server import NatsServer, needs_nats
from tenacious import LONG, available, turn

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, IdentityError, OverloadedError, UnavailableError
from winnow.journal import expiry
from winnow.journal.journal import Journal, JournalEnd, JournalEntry
from winnow.journal.opening import journal_url, open_journal, open_journal_ends, stream_of

pytestmark = needs_nats
jetstream = pytest.importorskip("winnow.journal.jetstream", reason=needs.NATS)
jetstream_ends = pytest.importorskip("winnow.journal.jetstream_ends", reason=needs.NATS)
pulling = pytest.importorskip("winnow.journal.pulling", reason=needs.NATS)


@pytest.fixture
def late_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry expires before it is stored, however slow this process and the server are."""
    monkeypatch.setattr(expiry, "MAX_PUBLISH_SECONDS", LONG)


@pytest.fixture
def patient(late_expiry: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No reply of the server comes too late."""
    monkeypatch.setattr(jetstream, "CONNECT_TIMEOUT", LONG)
    monkeypatch.setattr(pulling, "_HEARTBEAT_TIMEOUT", LONG)


@pytest.fixture
async def journal(nats_server: NatsServer) -> AsyncIterator[Journal]:
    journal = open_journal(nats_server.url, "index", 0)
    yield journal
    await journal.close()


async def publish(journal: Journal, *contents: str) -> list[int]:
    later = Deadline.after(LONG)
    return [
        (await available(partial(journal.publish, each.encode(), f"key-{each}", later))).sequence
        for each in contents
    ]


def once_publishing(seconds: float) -> Deadline:
    """A deadline whose time begins when it is first looked at: after any pause of this process."""
    began: list[float] = []

    def clock() -> float:
        began[:] = began or [time.monotonic()]
        return time.monotonic() - began[0]

    return Deadline(seconds, clock)


async def some(journal: Journal, after: int, count: int) -> list[JournalEntry]:
    """The next entries, however often the server goes away meanwhile."""
    found: list[JournalEntry] = []
    async with asyncio.timeout(LONG):
        while len(found) < count:
            try:
                async with aclosing(journal.read(after + len(found))) as reading:
                    async for delivered in reading:
                        found += delivered.entries
                        if len(found) >= count:
                            break
            except UnavailableError:
                await asyncio.sleep(0)
    return found


@pytest.mark.usefixtures("patient")
async def test_entries_are_read_in_their_order_from_any_place_on(journal: Journal) -> None:
    assert await publish(journal, "a", "b", "c") == [1, 2, 3]
    assert await some(journal, 0, 3) == [
        JournalEntry(1, "key-a", b"a"),
        JournalEntry(2, "key-b", b"b"),
        JournalEntry(3, "key-c", b"c"),
    ]
    assert [each.content for each in await some(journal, 2, 1)] == [b"c"]


@pytest.mark.usefixtures("patient")
async def test_a_reader_is_told_at_once_and_by_how_many_it_lags(journal: Journal) -> None:
    await publish(journal, *map(str, range(300)))
    lags = []
    async with asyncio.timeout(LONG), aclosing(journal.read(0)) as reading:
        async for delivered in reading:
            lags.append(delivered.backlog)
            if not delivered.backlog:
                break
        await publish(journal, "last")
        async for delivered in reading:
            if delivered.entries:
                assert delivered.entries == (JournalEntry(301, "key-last", b"last"),)
                break
    assert lags == sorted(lags, reverse=True)


async def test_an_entry_with_a_known_key_is_there_once(journal: Journal) -> None:
    assert await publish(journal, "a", "b", "a", "c") == [1, 2, 1, 3]
    assert [each.content for each in await some(journal, 0, 3)] == [b"a", b"b", b"c"]


async def test_shards_have_journals_of_their_own(nats_server: NatsServer, journal: Journal) -> None:
    other = open_journal(nats_server.url, "index", 1)
    try:
        assert await available(other.open) != await available(journal.open)
        await publish(journal, "a")
        assert await publish(other, "b") == [1]
        assert [each.content for each in await some(other, 0, 1)] == [b"b"]
    finally:
        await other.close()


@pytest.mark.usefixtures("patient")
async def test_a_status_of_the_server_does_not_mean_that_no_entries_are_left(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server sends one between two requests for large entries, for example."""

    pull_messages = jetstream.pull_messages

    async def pull_with_statuses(*arguments: Any) -> AsyncIterator[list[Any]]:
        yield []
        async with aclosing(pull_messages(*arguments)) as pulled:
            async for batch in pulled:
                for message in batch:
                    yield [message]
                    yield []

    monkeypatch.setattr(jetstream, "pull_messages", pull_with_statuses)
    await publish(journal, "a", "b", "c")
    after = 0
    async with aclosing(journal.read(after)) as reading:
        async for delivered in reading:
            after = delivered.entries[-1].sequence if delivered.entries else after
            assert delivered.backlog == 3 - after
            if after == 3 and not delivered.entries:
                break


async def test_reads_of_ends_share_a_failed_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with a thousand archived shards must not wait for as many connections in turn."""
    clock, attempts = ManualClock(), 0
    errors = [TimeoutError(), jetstream.nats.errors.OutboundBufferLimitError()]
    reasons = ["no reply in time", "the connection is lost"]

    async def connect(*_: str) -> Any:
        nonlocal attempts
        attempts += 1
        await turn()
        raise errors[attempts - 1]

    monkeypatch.setattr(jetstream_ends, "connect", connect)
    ends = jetstream_ends.JetStreamEnds("nats://host", stream_of, clock)
    for looks in (1, 2):
        read = await asyncio.gather(
            *(ends.read("index", shard) for shard in range(3)), return_exceptions=True
        )
        assert [type(each) for each in read] == [UnavailableError] * 3
        assert {str(each).split(": ")[-1] for each in read} == {reasons[looks - 1]}
        assert attempts == looks
        clock.advance(3.1)


async def test_the_ends_of_journals_are_read_by_one_connection_and_none_is_created(
    nats_server: NatsServer, journal: Journal
) -> None:
    """Archived replicas compare the last entry with their own."""
    ends = open_journal_ends(nats_server.url)
    try:
        assert await available(lambda: ends.read("index", 0)) is None
        own = await available(journal.open)
        assert await available(lambda: ends.read("index", 0)) == JournalEnd(own, 0)
        await publish(journal, "a", "b")
        assert await available(lambda: ends.read("index", 0)) == JournalEnd(own, 2)
        assert await available(lambda: ends.read("index", 1)) is None
        nats_server.stop()
        with pytest.raises(UnavailableError, match="cannot be reached"):
            await ends.read("index", 0)
        nats_server.start()
        assert await available(lambda: ends.read("index", 0), LONG) == JournalEnd(own, 2)
    finally:
        await ends.close()


async def test_a_server_that_is_killed_loses_nothing_that_it_acknowledged(
    nats_server: NatsServer, journal: Journal
) -> None:
    name = await available(journal.open)
    await publish(journal, *map(str, range(100)))
    reading = asyncio.create_task(some(journal, 0, 103))
    nats_server.stop(signal.SIGKILL)
    nats_server.start()
    assert await available(lambda: publish(journal, "x", "y", "z"), LONG) == [101, 102, 103]
    assert [each.sequence for each in await reading] == list(range(1, 104))
    assert await available(journal.open) == name


@pytest.mark.usefixtures("late_expiry")
async def test_an_entry_that_reaches_a_server_after_its_writer_gave_up_has_expired(
    nats_server: NatsServer, journal: Journal
) -> None:
    await publish(journal, "a")
    reading = asyncio.create_task(some(journal, 0, 3))
    nats_server.pause()
    with pytest.raises(DeadlineExceededError, match="did not acknowledge an entry in time"):
        await journal.publish(b"b", "key-b", once_publishing(1.5))
    nats_server.resume()
    assert await publish(journal, "c") == [3]
    assert [(each.content, each.expired) for each in await reading] == [
        (b"a", False),
        (b"b", True),
        (b"c", False),
    ]


async def test_a_writer_that_has_time_left_gives_up_as_unavailable(
    nats_server: NatsServer, journal: Journal
) -> None:
    """So that another replica is tried."""
    await publish(journal, "a")
    nats_server.pause()
    deadline = Deadline.after(600)
    with pytest.raises(UnavailableError, match="did not acknowledge an entry in time"):
        await journal.publish(b"b", "key-b", deadline)
    assert deadline.left() > 300


async def test_what_cannot_be_sent_fails_at_once_and_is_never_sent(
    nats_server: NatsServer, journal: Journal
) -> None:
    await publish(journal, "a")
    nats_server.stop()
    deadline = Deadline.after(600)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        await journal.publish(b"b", "key-b", deadline)
    nats_server.start()
    await available(lambda: publish(journal, "c"), LONG)
    assert [each.content for each in await some(journal, 0, 2)] == [b"a", b"c"]


@pytest.mark.usefixtures("late_expiry")
async def test_all_readers_judge_an_entry_alike_whenever_they_read_it(
    nats_server: NatsServer,
) -> None:
    """The clock of the writer is an hour slow, so its entries have expired when they are stored."""
    from winnow.journal.jetstream import JetStreamJournal

    slow = JetStreamJournal(nats_server.url, "winnow-index-00000", wall=lambda: time.time() - 3_600)
    right = open_journal(nats_server.url, "index", 0)
    try:
        assert await publish(right, "a") == [1]
        assert await publish(slow, "b") == [2]
        first = [each.expired for journal in (slow, right) for each in await some(journal, 0, 2)]
        nats_server.stop()
        nats_server.start()
        again = [each.expired for journal in (slow, right) for each in await some(journal, 0, 2)]
        assert first == again == [False, True, False, True]
    finally:
        await slow.close()
        await right.close()


async def test_an_entry_of_an_older_version_has_no_expiry_and_is_applied(
    nats_server: NatsServer, journal: Journal
) -> None:
    import nats

    await available(journal.open)
    async with await nats.connect(nats_server.url) as client:
        await client.jetstream().publish("winnow.index.00000", b"a", headers={"Nats-Msg-Id": "key"})
    assert await some(journal, 0, 1) == [JournalEntry(1, "key", b"a")]


async def test_a_journal_that_was_created_again_is_another_one(
    nats_server: NatsServer, journal: Journal, tmp_path: Path
) -> None:
    name = await available(journal.open)
    await publish(journal, "a", "b")
    await journal.close()
    nats_server.stop()
    (tmp_path / "nats" / "store").rename(tmp_path / "lost")
    nats_server.start()
    assert await available(journal.open) != name
    await publish(journal, "c")
    with pytest.raises(
        IdentityError, match="ends at entry 1, but the shard has applied entries up to 2"
    ):
        async for _ in journal.read(2):
            pass


@pytest.mark.usefixtures("patient")
async def test_an_entry_that_became_another_one_is_told(journal: Journal) -> None:
    await publish(journal, "a", "b")
    with pytest.raises(IdentityError, match=r"lost entries .* entry 1 is not the one"):
        async for _ in journal.read(1, "another key"):
            pass
    async with aclosing(journal.read(1, "key-a")) as reading:
        async for delivered in reading:
            assert [each.content for each in delivered.entries] == [b"b"]
            break


@pytest.mark.usefixtures("patient")
async def test_entries_that_were_removed_are_told(
    nats_server: NatsServer, journal: Journal
) -> None:
    import nats

    await publish(journal, *"abcde")
    async with await nats.connect(nats_server.url) as client:
        streams = client.jetstream()
        info = await streams.stream_info("winnow-index-00000")
        info.config.max_msgs = 2
        await streams.update_stream(info.config)
    with pytest.raises(IdentityError, match=r"begins at entry 4, .* up to 2: restore the shard"):
        async for _ in journal.read(2):
            pass
    assert [each.content for each in await some(journal, 3, 2)] == [b"d", b"e"]
    async with aclosing(journal.read(3, "key-c")) as reading:  # which is not there to be compared
        found: list[bytes] = []
        async for delivered in reading:
            found += [each.content for each in delivered.entries]
            if len(found) >= 2:
                break
    assert found == [b"d", b"e"]


async def test_a_journal_without_room_says_so(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("jetstream { max_file_store: 4KB }")
    nats_server = NatsServer(tmp_path / "nats", "-c", str(tmp_path / "conf")).start()
    journal = open_journal(nats_server.url, "index", 0)
    try:
        with pytest.raises(OverloadedError, match="is full"):
            await publish(journal, *(str(n) * 1_000 for n in range(10)))
    finally:
        await journal.close()
        nats_server.close()


@pytest.mark.usefixtures("patient")
async def test_the_largest_entry_is_as_large_as_it_says(journal: Journal) -> None:
    await available(journal.open)
    most = journal.max_bytes
    assert most > 1_000_000
    published = await journal.publish(bytes(most), "k" * 100, Deadline.after(LONG))
    assert published.sequence == 1
    with pytest.raises(OverloadedError, match=f"an entry exceeds the {most} bytes"):
        await journal.publish(bytes(most + 5_000), "l", Deadline.after(LONG))


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    journal = open_journal("nats://me:secret@127.0.0.1:9", "index", 0)
    with pytest.raises(UnavailableError) as raised:
        await journal.open()
    assert "stream winnow-index-00000 at 127.0.0.1:9 cannot be reached" in str(raised.value)
    assert "secret" not in str(raised.value)
    await journal.close()


@pytest.mark.parametrize(
    "url",
    [
        "nats",
        "http://x:1",
        "nats://",
        "127.0.0.1:4222",
        "nats://x:99999",
        "nats://x:port",
        "nats://x:0",
    ],
)
def test_what_is_no_journal_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="expected nats://HOST:PORT"):
        journal_url(url)
