"""Counts of words over real gRPC."""

from typing import Any

import grpc
import pytest
from logged_shards import LiveReplica, ShardLog, counted
from tenacious import LATER

from winnow.convert import shard_feed as convert
from winnow.errors import UnavailableError, WinnowError
from winnow.rpc.channel import open_channel
from winnow.stateless.words.remote import RemoteWordCounts
from winnow.v1 import shard_feed_pb2_grpc

BUILT = {"a": (1, 2), "b": (2, 3)}


class Servicer(shard_feed_pb2_grpc.ShardFeedServiceServicer):
    def __init__(self, replica: LiveReplica) -> None:
        self.replica = replica
        self.told: list[bool] = []

    async def Write(self, request: Any, context: Any) -> Any:
        raise AssertionError

    async def FindUnchanged(self, request: Any, context: Any) -> Any:
        raise AssertionError

    async def GetWordCounts(self, request: Any, context: Any) -> Any:
        built = None if request.changes_only else await self.replica.word_counts_at_build(LATER)
        self.told.append(built is not None)
        return convert.counts_to_message(await self.replica.changes(LATER), built)


async def test_counts_survive_the_journey_and_what_never_changes_travels_when_it_is_asked_for() -> (
    None
):
    replica = LiveReplica("x", ShardLog(BUILT), index=counted(BUILT))
    replica.log.put("c", (1, 40))
    replica.log.delete("b")
    replica.follow()
    server, servicer = grpc.aio.server(), Servicer(replica)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        remote = RemoteWordCounts(channel, "node", 0)
        built, changes = await remote.word_counts_at_build(LATER), await remote.changes(LATER)
    await server.stop(0)
    expected = await replica.changes(LATER)
    assert servicer.told == [True, False]
    assert (built.total, built.tokens) == (2, 4)
    assert built.passages.tolist() == replica.index.passages.tolist()
    assert changes.ids.tolist() == expected.ids.tolist() == [1, 2, 3, 40]
    assert changes.by.tolist() == expected.by.tolist() == [1, -1, -1, 1]
    assert (changes.sequence, changes.passages, changes.tokens) == (2, 0, 0)


async def test_a_node_that_is_gone_or_takes_no_writes_is_an_error_with_its_address() -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(WinnowError, match="node: "):
            await RemoteWordCounts(channel, "node", 0).changes(LATER)
        await server.stop(0)
        with pytest.raises(UnavailableError, match="node: "):
            await RemoteWordCounts(channel, "node", 0).changes(LATER)
