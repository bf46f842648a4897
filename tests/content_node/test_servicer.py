"""A content node over real gRPC, in every state that it can be in, as a front node sees it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import structlog
from fakes import ENCODED, FakeSearcher, joint_retrieval, reading
from listening import listening, new_server
from tenacious import LONG

from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.deadline import Deadline
from winnow.domain.question import RetrievalDepth
from winnow.errors import (
    ArtefactError,
    NotLoadedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.rpc.channel import open_channel
from winnow.searcher import Retrieved
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.replicas.remote import RemoteNode, RemoteSearcher
from winnow.v1 import shard_pb2_grpc


@pytest.fixture
def shard() -> ServedShard:
    return ServedShard()


@pytest.fixture
async def node(shard: ServedShard) -> AsyncIterator[RemoteSearcher]:
    async with serving(shard) as remote:
        yield remote.searcher(None)


@contextlib.asynccontextmanager
async def serving(*shards: ServedShard) -> AsyncIterator[RemoteNode]:
    server = new_server(SERVICE)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(
        ShardServicer(ServedShards(shards, joint=joint_retrieval()), 10.0), server.grpc
    )
    async with listening(server) as address, open_channel(address) as channel:
        yield RemoteNode(channel, address)


async def test_calls_are_unavailable_while_the_shard_is_loading(node: RemoteSearcher) -> None:
    with pytest.raises(UnavailableError, match="still loading") as caught:
        await node.info(Deadline.after(LONG))
    assert type(caught.value) is UnavailableError


async def test_every_call_gets_the_reason_why_there_is_no_shard(
    shard: ServedShard, node: RemoteSearcher
) -> None:
    shard.fail("the graph is damaged")
    with pytest.raises(NotLoadedError, match="the graph is damaged"):
        await node.info(Deadline.after(LONG))
    with pytest.raises(NotLoadedError, match="the graph is damaged"):
        await node.retrieve(ENCODED, RetrievalDepth(passages=3), Deadline.after(LONG))


async def test_a_caller_that_gives_up_ends_the_work(
    shard: ServedShard, node: RemoteSearcher
) -> None:
    searcher = FakeSearcher([reading("a")], hangs=True)
    shard.serve(searcher)
    call = asyncio.create_task(
        node.retrieve(ENCODED, RetrievalDepth(passages=3), Deadline.after(60))
    )
    await asyncio.wait_for(searcher.hanging.wait(), 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.wait_for(searcher.released.wait(), 60)


async def test_a_refusal_says_when_to_come_back(shard: ServedShard, node: RemoteSearcher) -> None:
    shard.serve(FakeSearcher([reading("a")], fails=OverloadedError("no room", 0.25)))
    with pytest.raises(OverloadedError, match="no room") as caught:
        await node.retrieve(ENCODED, RetrievalDepth(passages=3), Deadline.after(LONG))
    assert caught.value.retry_after == 0.25


@pytest.mark.parametrize("bug", [ZeroDivisionError("oops"), ArtefactError("oops")])
async def test_a_bug_in_one_shard_is_logged_and_the_others_are_answered(bug: Exception) -> None:
    shards = [ServedShard(number) for number in range(2)]
    shards[0].serve(FakeSearcher([reading("a")], fails=bug))
    shards[1].serve(FakeSearcher([reading("b")]))
    depth, until = RetrievalDepth(passages=3), Deadline.after(60)
    async with serving(*shards) as node:
        with structlog.testing.capture_logs() as logged:
            failed, found = await asyncio.gather(
                *(node.searcher(shard).retrieve(ENCODED, depth, until) for shard in range(2)),
                return_exceptions=True,
            )
    assert isinstance(found, Retrieved)
    assert isinstance(failed, WinnowError)
    assert "oops" not in str(failed)
    (line,) = [each for each in logged if each["log_level"] == "error"]
    assert (line["shard"], line["error"]) == (0, "oops")


async def test_a_leaving_node_says_so_and_finishes_its_work(
    shard: ServedShard, node: RemoteSearcher
) -> None:
    shard.serve(FakeSearcher([reading("a"), reading("b")]))
    assert (await node.info(Deadline.after(LONG))).passages == 2
    shard.start_leaving()
    with pytest.raises(UnavailableError, match="leaving"):
        await node.info(Deadline.after(LONG))
    assert (
        len((await node.retrieve(ENCODED, RetrievalDepth(passages=3), Deadline.after(LONG))).hits)
        == 2
    )


async def test_a_front_passes_on_the_key_of_the_client(
    shard: ServedShard, node: RemoteSearcher
) -> None:
    searcher = FakeSearcher([reading("a")])
    shard.serve(searcher)
    for client in ("", "tenant-7"):
        asked, deadline = replace(ENCODED, client=client), Deadline.after(LONG)
        found = await node.retrieve(asked, RetrievalDepth(passages=1), deadline)
        await node.read(asked, found.hits, deadline)
        await node.search(asked, RetrievalDepth(passages=1), deadline)
    assert searcher.clients == [""] * 4 + ["tenant-7"] * 4


async def test_a_filter_reaches_the_shard_and_an_invalid_one_is_refused(
    shard: ServedShard, node: RemoteSearcher
) -> None:
    searcher = FakeSearcher([reading("a")])
    shard.serve(searcher)
    longest = " or ".join(['"a" in (900000000000000, 1)'] * 100)
    for where in ("", "year > 2010", longest):
        await node.retrieve(ENCODED, RetrievalDepth(passages=1, where=where), Deadline.after(LONG))
        await node.search(ENCODED, RetrievalDepth(passages=1, where=where), Deadline.after(LONG))
        assert [depth.where for depth in searcher.depths[-2:]] == [where, where]
    for where in ("year >", " ", "x" * 10_000):
        with pytest.raises(WinnowError, match="filter: "):
            await node.retrieve(
                ENCODED, RetrievalDepth(passages=1, where=where), Deadline.after(LONG)
            )
        with pytest.raises(WinnowError, match="filter: "):
            await node.search(
                ENCODED, RetrievalDepth(passages=1, where=where), Deadline.after(LONG)
            )
