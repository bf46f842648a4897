"""How many writes a second a shard takes, with vectors given: at the log, at the shard, over gRPC.

    python -m bench.feeding --passages 20000 --callers 16 --each 50

Every write is durable when it counts. Passages are made up, as long as those of 100 words are.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
from prometheus_client import CollectorRegistry

from winnow.content_node.feed_servicer import FEED_SERVICE, LARGEST_WRITE, ShardFeedServicer
from winnow.content_node.indexing.counting import count_words
from winnow.content_node.indexing.staging import Staging
from winnow.content_node.live.entry import Logged, packed
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.writing import GraphPlan, ShardSetIdentity, publish_shard
from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.shard import ShardInfo
from winnow.domain.write import EncodedPassage, Write
from winnow.passages.rows import Row
from winnow.rpc.channel import open_channel
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.tokenizer import Tokens
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc

_DIMENSION = 384
_VOCABULARY = 30_522
_TOKENS = 130
_CHARACTERS = 600
_INFO = ShardInfo(0, 1, "bench", 0, _DIMENSION, "bench", "bench")
Store = Callable[[Sequence[Write]], Awaitable[object]]


def made_up(count: int) -> list[Write]:
    """Puts of passages whose words are as rare as those of texts, more or less."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((count, _DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = np.minimum(1_000 + rng.zipf(1.2, (count, _TOKENS)), _VOCABULARY - 1)
    ends = np.linspace(4, _CHARACTERS, _TOKENS).astype(int).tolist()
    offsets = tuple((end - 4, end) for end in ends)
    return [
        Write(
            f"passage-{n}",
            None,
            EncodedPassage(
                Passage(f"passage-{n}", "Title", f"{n} ".ljust(_CHARACTERS, "x")),
                (2_516,),
                Tokens(tuple(ids[n].tolist()), offsets),
                vectors[n],
            ),
        )
        for n in range(count)
    ]


async def measure(what: str, writes: Sequence[Write], callers: int, each: int, to: Store) -> None:
    """Writes everything by `callers` at the same time, `each` at a time, and prints the rate."""
    calls = iter([writes[at : at + each] for at in range(0, len(writes), each)])
    spent: list[float] = []

    async def feed() -> None:
        for call in calls:
            started = time.perf_counter()
            await to(call)
            spent.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(feed() for _ in range(callers)))
    seconds = time.perf_counter() - started
    middle, late = np.percentile(spent, (50, 99)) * 1e3
    print(
        f"{what:28} {len(writes) / seconds:8.0f} writes/s   a call {middle:6.1f} ms p50 "
        f"{late:6.1f} ms p99"
    )


async def at_the_log(shard: Path, writes: Sequence[Write], callers: int, each: int) -> None:
    """Transactions of as many writes as wait at the same time, and nothing else."""
    log = open_log(shard)

    async def store(call: Sequence[Write]) -> None:
        first = log.last + 1
        logged = [
            Logged(first + n, write.id, write.version, packed(write.put), None)
            for n, write in enumerate(call)
            if write.put is not None
        ]
        log.append(logged)
        log.acknowledge()

    await measure("the log alone", writes, 1, callers * each, store)
    log.close()


async def at_the_shard(live: LiveShard, writes: Sequence[Write], callers: int, each: int) -> None:
    """In this process, served at once."""

    async def store(call: Sequence[Write]) -> None:
        await live.write(call, Deadline.after(60))

    await measure("the shard in this process", writes, callers, each, store)


async def over_grpc(live: LiveShard, writes: Sequence[Write], callers: int, each: int) -> None:
    """Through a server and a channel in this process: both sides share its thread."""
    servicer = ShardFeedServicer(60.0)
    servicer.serve(live, _INFO, "bench")
    boundary = CallInterceptor(RpcMetrics(CollectorRegistry()), quiet=True)
    server = Server([FEED_SERVICE], boundary, LARGEST_WRITE, arriving=32 * LARGEST_WRITE)
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(servicer, server.grpc)
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    messages = {write.id: convert.writes_to_messages([write])[0] for write in writes}
    async with open_channel(address) as channel:
        stub = shard_feed_pb2_grpc.ShardFeedServiceStub(channel)

        async def store(call: Sequence[Write]) -> None:
            request = shard_feed_pb2.WriteRequest(
                index_id="bench",
                encoding_fingerprint="bench",
                writes=[messages[w.id] for w in call],
            )
            try:
                await stub.Write(request)
            except grpc.aio.AioRpcError as error:
                raise SystemExit(error.details()) from error

        await measure("over gRPC, messages made", writes, callers, each, store)
    await server.drain(0)


def empty_shard(directory: Path) -> Path:
    """A shard of one passage."""
    [write] = made_up(1)
    assert write.put is not None
    staging = Staging(directory / "staging.sqlite")
    passage = replace(write.put.passage, id="first")
    staging.add(Row(1, passage, "{}"), Tokens((1,), ((0, 1),)), write.put.tokens, shard=0)
    staging.encoded([(1, write.put.vector)])
    words = count_words(staging.words())
    staging.close()
    identity = ShardSetIdentity("bench", 1, _DIMENSION, "bench", "bench", 1, words)
    publish_shard(directory / "staging.sqlite", directory, 0, identity, GraphPlan())
    return directory / "shard-00000-of-00001"


def opened(shard: Path) -> LiveShard:
    """The shard, taking as many writes as come."""
    return open_live(
        shard,
        lambda _: open_shard(shard, ef=64),
        lambda _: WriteLimits(0, 1, _DIMENSION, _VOCABULARY, 10**9),
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )


async def run(passages: int, callers: int, each: int, directory: Path) -> None:
    """All three, each with a shard of its own."""
    writes = made_up(passages)
    shard = empty_shard(directory)
    copies = [Path(shutil.copytree(shard, directory / name)) for name in "abc"]
    await at_the_log(copies[0], writes, callers, each)
    for copy, way in ((copies[1], at_the_shard), (copies[2], over_grpc)):
        live = opened(copy)
        await way(live, writes, callers, each)
        print(f"{'':28} {len(live.view.placed)} segments")
        await live.close()
    started = time.perf_counter()
    live = opened(copies[2])
    print(f"opened again, {live.sequence} writes: {time.perf_counter() - started:.2f} s")
    await live.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=20_000, help="writes (default 20000)")
    parser.add_argument("--callers", type=int, default=16, help="calls in hand (default 16)")
    parser.add_argument("--each", type=int, default=50, help="writes of a call (default 50)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
        asyncio.run(run(arguments.passages, arguments.callers, arguments.each, Path(directory)))


if __name__ == "__main__":
    main()
