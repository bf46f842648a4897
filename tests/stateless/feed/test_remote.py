"""A shard behind real gRPC that is written to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import numpy as np
import pytest
from awaited import AwaitedCount
from fakes import FakeShardWriter
from heap_in_use import counted, kept
from listening import listening, new_server
from tenacious import LONG, growing

from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.quota import StorageQuota, TenantUsage
from winnow.domain.write import EncodedPassage, Outcome, Write, Written
from winnow.errors import (
    DeadlineExceededError,
    NotWritableError,
    OverloadedError,
    QuotaExceededError,
    UnavailableError,
    WinnowError,
    quota_error,
)
from winnow.passages.canonical import PassageDigest, digest
from winnow.passages.encoding import pack
from winnow.passages.validation import MAX_METADATA, MAX_TEXT, MAX_TITLE
from winnow.rpc.channel import open_unshared
from winnow.rpc.server import KIB
from winnow.rpc.status import rich_status
from winnow.shard_service.remote import MAX_BATCH_BYTES, RemoteShardWriter
from winnow.stateless.feed.validation import MAX_TOKENS
from winnow.text.tokenizer import Tokens
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

SERVICE = "winnow.v1.ShardFeedService"
NODE = 256 * KIB
"""Bytes of a message that a node takes."""
CALLS, AT_ONCE = 2_000, 50
KEPT = 600
"""Bytes for each call: gRPC's server keeps some, too; its client kept a thousand."""


class Servicer(shard_feed_pb2_grpc.ShardFeedServiceServicer):
    """A shard behind gRPC."""

    def __init__(self, shard: FakeShardWriter) -> None:
        self.shard = shard
        self.requests: list[shard_feed_pb2.WriteRequest] = []
        self.compared: list[shard_feed_pb2.FindUnchangedRequest] = []
        self.answer: Callable[[Any, Any], Awaitable[Any]] = self._answer

    async def Write(self, request: Any, context: Any) -> Any:
        return await self.answer(request, context)

    async def FindUnchanged(self, request: Any, context: Any) -> Any:
        self.compared.append(request)
        puts = convert.digests_of_messages(request.passages)
        return convert.unchanged_to_message(await self.shard.find_unchanged(puts, soon()))

    async def _answer(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        writes = convert.writes_of_messages(request.writes, convert.quota_of_message(request))
        return convert.written_to_message(await self.shard.write(writes, Deadline.after(LONG)))

    async def GetWordCounts(self, request: Any, context: Any) -> Any:
        raise AssertionError


@contextlib.asynccontextmanager
async def reached(serves: bool = True) -> AsyncIterator[tuple[Servicer, RemoteShardWriter]]:
    servicer = Servicer(FakeShardWriter())
    server = new_server(
        SERVICE,
        max_message_bytes=NODE,
        max_pending_bytes=2 * AT_ONCE * NODE,  # a busy machine receives all calls in parts
    )
    if serves:
        shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(servicer, server.grpc)
    async with listening(server) as address, open_unshared(address) as channel:
        yield (
            servicer,
            RemoteShardWriter(
                channel=channel,
                address=address,
                index_id="an-index",
                shard=3,
                fingerprint="an-encoder",
            ),
        )


def encoded(
    name: str, text: str = "some words", tokens: int = 2, title: str = "T", metadata: str = ""
) -> EncodedPassage:
    ids = tuple(range(tokens))
    offsets = tuple((min(n, len(text) - 1), min(n + 1, len(text))) for n in ids)
    vector = np.eye(1, 384, dtype=np.float32)[0]
    return pack(
        Passage(name, title, text, metadata),
        range(len(title) * 3 // 2),
        Tokens(ids, offsets),
        vector,
    )


def putting(name: str, **more: Any) -> Write:
    return Write(name, 7, encoded(name, **more))


def soon() -> Deadline:
    return Deadline.after(LONG)


async def test_writes_arrive_as_they_were_and_their_results_come_back() -> None:
    async with reached() as (servicer, writer):
        written = await writer.write([putting("a"), putting("a"), Write("b")], soon())
        assert [each.outcome for each in written] == [
            Outcome.STORED,
            Outcome.UNCHANGED,
            Outcome.UNCHANGED,
        ]
        (request,) = servicer.requests
        assert (request.index_id, request.shard) == ("an-index", 3)
        assert request.encoding_fingerprint == "an-encoder"
        assert servicer.shard.passages["a"] == encoded("a")
        assert writer.calls == 0


async def test_unchanged_puts_come_back_in_order() -> None:
    async with reached() as (servicer, writer):
        await writer.write([putting("a"), putting("b")], soon())
        puts = [
            PassageDigest(name, version, digest(encoded(name).passage))
            for name, version in (("b", 7), ("new", None), ("a", 6), ("a", 8), ("a", None))
        ]
        found = await writer.find_unchanged(puts, soon())
        unchanged, outdated = Written(Outcome.UNCHANGED, 2), Written(Outcome.OUTDATED, 2)
        assert found == [unchanged, None, outdated, None, unchanged]
        (request,) = servicer.compared
        assert (request.index_id, request.shard) == ("an-index", 3)
        assert request.encoding_fingerprint == "an-encoder"
        assert writer.calls == 0


async def test_a_node_of_an_older_version_finds_no_unchanged_puts() -> None:
    async with reached(serves=False) as (_, writer):
        assert await writer.find_unchanged([PassageDigest("a", None, b"")], soon()) == [None]


async def test_writes_beyond_one_message_are_sent_in_several_in_order() -> None:
    async with reached() as (servicer, writer):
        names = [str(number) for number in range(40)]
        writes = [putting(name, text="words " * 1_600, tokens=1_600) for name in names]
        written = await writer.write(writes, soon())
        assert [each.sequence for each in written] == list(range(1, 41))
        assert len(servicer.requests) > 3
        assert all(request.ByteSize() < NODE for request in servicer.requests)
        assert [name for batch in servicer.shard.batches for name in batch] == names


async def test_no_more_is_converted_at_once_than_a_message_holds() -> None:
    """Fifty long passages would take the event loop some milliseconds."""
    sent, read = [putting(str(n), text="words " * 1_600, tokens=1_600) for n in range(40)], 0

    class CountedWrites(list[Write]):
        def __iter__(self) -> Iterator[Write]:
            nonlocal read
            for write in sent:
                read += 1
                yield write

        def __getitem__(self, place: Any) -> Any:
            nonlocal read
            read += len(sent[place])
            return sent[place]

    async with reached() as (servicer, writer):
        read_before: list[int] = []
        answer = servicer.answer

        async def counting(request: Any, context: Any) -> Any:
            read_before.append(read)
            return await answer(request, context)

        servicer.answer = counting
        await writer.write(CountedWrites(sent), soon())
        assert read_before[0] < len(sent) / 2
        assert read == len(sent)


async def test_the_largest_passage_that_is_valid_fits_in_a_message() -> None:
    text, title = "🎻" * MAX_TEXT, "🎻" * MAX_TITLE
    metadata = f'{{"a": "{"b" * (MAX_METADATA - 9)}"}}'
    assert len(metadata) == MAX_METADATA
    largest = putting("🎻" * 256, text=text, title=title, tokens=MAX_TOKENS, metadata=metadata)
    (message,) = convert.writes_to_messages([largest])
    assert message.ByteSize() < MAX_BATCH_BYTES
    async with reached() as (servicer, writer):
        await writer.write([largest, largest], soon())
        assert len(servicer.requests) == 2


@pytest.mark.parametrize(
    ("fails", "kind"),
    [
        (OverloadedError("the disk is full", 0.25), OverloadedError),
        (NotWritableError("no log"), NotWritableError),
        (UnavailableError("leaving"), UnavailableError),
    ],
)
async def test_an_error_of_the_node_comes_back_as_it_is(
    fails: WinnowError, kind: type[WinnowError]
) -> None:
    async with reached() as (servicer, writer):
        servicer.shard.fails = fails
        with pytest.raises(kind, match=f"{writer.address}: {fails}") as caught:
            await writer.write([putting("a")], soon())
        if isinstance(caught.value, OverloadedError):
            assert caught.value.retry_after == 0.25


async def test_a_node_that_takes_no_writes_says_what_to_change() -> None:
    async with reached(serves=False) as (_, writer):
        with pytest.raises(NotWritableError, match="start the node with --feed"):
            await writer.write([putting("a")], soon())


async def test_a_node_that_is_gone_is_unavailable() -> None:
    async with reached() as (_, writer):
        pass
    channel = open_unshared(writer.address)
    gone = RemoteShardWriter(
        channel=channel,
        address=writer.address,
        index_id="an-index",
        shard=3,
        fingerprint="an-encoder",
    )
    with pytest.raises(UnavailableError):
        await gone.write([putting("a")], soon())
    await channel.close()


async def test_a_node_that_hangs_is_given_up_at_the_deadline() -> None:
    async with reached() as (servicer, writer):
        servicer.shard.hangs = True
        for seconds in growing(2.0):
            with pytest.raises(DeadlineExceededError):
                await writer.write([putting("a")], Deadline.after(seconds))
            if servicer.shard.hanging.is_set():
                break
        await asyncio.wait_for(servicer.shard.released.wait(), LONG)


async def test_a_write_that_is_cancelled_ends_on_the_node() -> None:
    async with reached() as (servicer, writer):
        servicer.shard.hangs = True
        writing = asyncio.create_task(writer.write([putting("a")], soon()))
        await asyncio.wait_for(servicer.shard.hanging.wait(), LONG)
        assert writer.calls == 1
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await asyncio.wait_for(servicer.shard.released.wait(), LONG)
        assert writer.calls == 0


@counted
async def test_writes_that_are_cancelled_leave_nothing_behind() -> None:
    """Clients that go away have theirs cancelled; see `winnow.rpc.replying`."""
    async with reached() as (servicer, writer):
        asked, ended = AwaitedCount(), AwaitedCount()

        async def hang(request: Any, context: Any) -> Any:
            asked.add()
            try:
                await asyncio.Event().wait()
            finally:
                ended.add()

        servicer.answer = hang

        async def give_up(calls: int) -> None:
            for _ in range(calls // AT_ONCE):
                before = asked.value
                tasks = [
                    asyncio.create_task(writer.write([Write("b")], soon())) for _ in range(AT_ONCE)
                ]
                await asked.reaches(before + AT_ONCE, tasks)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await ended.reaches(asked.value)

        assert await kept(give_up, CALLS, KEPT) < KEPT


async def test_a_quota_reaches_the_node_and_its_count_or_refusal_comes_back() -> None:
    quota, usage = StorageQuota(passages=0, bytes=None), TenantUsage(7, 70)
    limited = Write("acme\x1fp", quota=quota)
    async with reached() as (servicer, writer):
        got: list[StorageQuota | None] = []

        async def count(request: Any, _context: Any) -> Any:
            writes = convert.writes_of_messages(request.writes, convert.quota_of_message(request))
            got.append(writes[0].quota)
            return convert.written_to_message([Written(Outcome.STORED, 1, usage=usage)])

        async def refuse(_request: Any, context: Any) -> Any:
            await context.abort_with_status(rich_status(quota_error("acme", "passages", 0, 0)))

        servicer.answer = count
        assert [each.usage for each in await writer.write([limited], soon())] == [usage]
        await writer.write([Write("p")], soon())
        assert got == [quota, None]
        servicer.answer = refuse
        with pytest.raises(QuotaExceededError) as caught:
            await writer.write([limited], soon())
        assert caught.value.metadata == {"limit": "passages", "quota": "0", "used": "0"}
