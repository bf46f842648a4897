"""Writes to a content node over real gRPC, in every state that it can be in."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from fakes import joint_retrieval, shard_info
from listening import listening, new_server
from live_writes import delete, digested, put
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.shard import open_shard
from winnow.convert import shard_feed as convert
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import (
    IdentityError,
    InvalidRequestError,
    NotLoadedError,
    NotWritableError,
    UnavailableError,
    WinnowError,
)
from winnow.rpc.channel import open_channel
from winnow.rpc.status import error_of
from winnow.shard_service.feed_servicer import FEED_SERVICE, MAX_WRITE_BYTES, ShardFeedServicer
from winnow.shard_service.node_time import now_ms
from winnow.shard_writer import WritableShard
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

GOLDEN = Path(__file__).parent.parent / "golden" / "shard-format-3"
INFO = shard_info(shards=1, index_id="golden", passages=3, dimension=8)
Stub = Any


@pytest.fixture
def served() -> ServedShard:
    return ServedShard(0)


@pytest.fixture
def servicer(served: ServedShard) -> ShardFeedServicer:
    return ShardFeedServicer(ServedShards([served], joint=joint_retrieval()), LONG)


@pytest.fixture
async def node(servicer: ShardFeedServicer) -> AsyncIterator[Stub]:
    server = new_server(FEED_SERVICE, max_message_bytes=MAX_WRITE_BYTES)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(servicer, server.grpc)
    async with listening(server) as address, open_channel(address) as channel:
        yield shard_feed_pb2_grpc.ShardFeedServiceStub(channel)


@pytest.fixture
async def shard(tmp_path: Path, served: ServedShard) -> AsyncIterator[LiveShard]:
    live = opened(tmp_path / "shard", "")
    served.accept_writes(WritableShard(live, INFO, "golden"))
    yield live
    await live.close()


def opened(directory: Path, refusal: str) -> LiveShard:
    shutil.copytree(GOLDEN, directory, dirs_exist_ok=True)
    return open_live(
        directory,
        lambda _: open_shard(directory, ef=64),
        lambda _: WriteLimits(
            shard=0, shards=1, dimension=8, vocabulary=1_000, max_unmerged=10_000, refusal=refusal
        ),
        WriteMetrics(CollectorRegistry()),
        feeding=not refusal,
    )


def request(*writes: Write, **altered: Any) -> shard_feed_pb2.WriteRequest:
    made = shard_feed_pb2.WriteRequest(index_id="golden", shard=0, encoding_fingerprint="golden")
    made.writes.extend(convert.writes_to_messages(writes))
    for name, value in altered.items():
        setattr(made, name, value)
    return made


async def write(node: Stub, asked: shard_feed_pb2.WriteRequest) -> list[Written]:
    return convert.written_of_message(await told(node.Write(asked)), len(asked.writes))


async def told(call: Any) -> Any:
    """What a call returns; raises the domain error that it ends with."""
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise error_of(error.code(), error.details() or "", error.trailing_metadata()) from error


async def test_calls_are_unavailable_while_the_shard_is_loading(node: Stub) -> None:
    with pytest.raises(UnavailableError, match="still loading"):
        await write(node, request(put("d")))


async def test_calls_get_the_reason_why_there_is_no_shard(served: ServedShard, node: Stub) -> None:
    served.fail("the graph is damaged")
    with pytest.raises(NotLoadedError, match="the graph is damaged"):
        await write(node, request(put("d")))
    with pytest.raises(NotLoadedError, match="the graph is damaged"):
        await told(node.GetWordCounts(shard_feed_pb2.GetWordCountsRequest()))


async def test_a_write_is_acknowledged_and_stored(shard: LiveShard, node: Stub) -> None:
    written = await write(node, request(put("d", "one"), delete("a"), delete("nothing")))
    outcomes = [Outcome.STORED, Outcome.STORED, Outcome.UNCHANGED]
    assert written == [Written(o, n) for o, n in zip(outcomes, (1, 2, 2), strict=True)]
    assert (shard.sequence, shard.view.passages) == (2, 3)
    assert await write(node, request()) == []


def comparing(*puts: Write, **altered: Any) -> shard_feed_pb2.FindUnchangedRequest:
    made = shard_feed_pb2.FindUnchangedRequest(
        index_id="golden", shard=0, encoding_fingerprint="golden"
    )
    made.passages.extend(convert.digests_to_messages(map(digested, puts)))
    for name, value in altered.items():
        setattr(made, name, value)
    return made


async def test_unchanged_passages_are_reported(shard: LiveShard, node: Stub) -> None:
    await write(node, request(put("d", "one", 3)))
    asked = comparing(
        put("d", "one", 3), put("d", "two", 4), put("d", "one", 2), put("a", "First.")
    )
    found = convert.unchanged_of_message(await told(node.FindUnchanged(asked)), 4)
    outcomes = [Outcome.UNCHANGED, None, Outcome.OUTDATED, Outcome.UNCHANGED]
    assert found == [each and Written(each, 1) for each in outcomes]
    with pytest.raises(IdentityError, match="have the encoding fingerprint other"):
        await told(node.FindUnchanged(comparing(put("d"), encoding_fingerprint="other")))
    with pytest.raises(UnavailableError, match="reported 0 outcomes for 1 passages"):
        convert.unchanged_of_message(shard_feed_pb2.FindUnchangedResponse(), 1)


async def test_words_are_counted_as_built_and_as_changed(shard: LiveShard, node: Stub) -> None:
    await write(node, request(delete("a")))
    both = await told(node.GetWordCounts(shard_feed_pb2.GetWordCountsRequest()))
    built, changes = convert.built_of_message(both), convert.changes_of_message(both)
    assert (built.total, built.tokens, built.passages[1]) == (3, 12, 3)
    assert (changes.passages, changes.tokens, changes.ids.tolist()) == (-1, -4, [1, 2, 3, 9])
    changes_only = shard_feed_pb2.GetWordCountsRequest(changes_only=True)
    later = await told(node.GetWordCounts(changes_only))
    assert not later.built
    assert convert.changes_of_message(later).sequence == 1


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"index_id": "other"}, "is for shard 0 of index other"),
        ({"encoding_fingerprint": "other"}, "have the encoding fingerprint other"),
    ],
)
async def test_writes_for_another_shard_or_encoder_are_refused(
    shard: LiveShard, node: Stub, altered: dict[str, Any], said: str
) -> None:
    with pytest.raises(IdentityError, match=said):
        await write(node, request(put("d"), **altered))
    assert shard.sequence == 0


async def test_writes_for_a_shard_of_another_node_can_be_sent_there(
    shard: LiveShard, node: Stub
) -> None:
    with pytest.raises(UnavailableError, match="this node does not serve shard 3"):
        await write(node, request(put("d"), shard=3))
    assert shard.sequence == 0


async def test_nonsense_is_a_field_violation_and_nothing_of_its_call_is_stored(
    shard: LiveShard, node: Stub
) -> None:
    asked = request(put("d"), put("e"))
    asked.writes[1].put.vector = np.zeros(8, "<f4").tobytes()
    with pytest.raises(WinnowError, match=r"writes\[1\]\.put\.vector: its norm is 0"):
        await write(node, asked)
    asked.writes[1].put.vector = np.eye(1, 9, dtype="<f4").tobytes()
    with pytest.raises(WinnowError, match=r"writes\[1\]\.put\.vector: has 9 values"):
        await write(node, asked)
    assert shard.sequence == 0


async def test_a_message_of_more_than_a_megabyte_is_refused(shard: LiveShard, node: Stub) -> None:
    asked = request(*(put(f"p{n}", "x" * 90_000) for n in range(12)))
    with pytest.raises(InvalidRequestError, match="is over the limit of"):
        await write(node, asked)
    assert shard.sequence == 0


async def test_a_node_without_feed_refuses_writes_and_returns_word_counts(
    tmp_path: Path, served: ServedShard, node: Stub
) -> None:
    live = opened(tmp_path, "start the node with --feed")
    served.accept_writes(WritableShard(live, INFO, "golden"))
    with pytest.raises(NotWritableError, match="start the node with --feed"):
        await write(node, request(put("d")))
    message = await told(node.GetWordCounts(shard_feed_pb2.GetWordCountsRequest()))
    assert message.built_passages == 3
    await live.close()


async def test_a_write_that_has_expired_is_refused(shard: LiveShard, node: Stub) -> None:
    """gRPC counts the deadline of a call from its arrival, however late that is."""
    with pytest.raises(UnavailableError, match="arrived after they had expired"):
        await write(node, request(put("d"), expires_at_ms=now_ms() - 1))
    await write(node, request(put("e"), expires_at_ms=now_ms() + 3_600_000))
    assert shard.sequence == 1


async def test_an_attempt_that_arrives_after_a_later_one_is_refused(
    shard: LiveShard, node: Stub
) -> None:
    await write(node, request(put("d", "one"), call="first", attempt=1))
    await write(node, request(put("d", "two"), call="second", attempt=0))
    with pytest.raises(UnavailableError, match="a later attempt"):
        await write(node, request(put("d", "one"), call="first", attempt=0))
    assert shard.sequence == 2
