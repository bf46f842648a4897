"""A shard's files are replaced, deleted, cut short or written over while it is asked.

Real files, a real server. What was verified is what is answered from, or nothing is.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from fakes import joint_retrieval
from grpc_health.v1 import health_pb2, health_pb2_grpc
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.content_node.file_changes import ShardHealth, watch_changes
from winnow.content_node.metrics import NodeMetrics, ShardMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.shard import StoredSegment, open_shard, view_of
from winnow.content_node.shard.changes import FileChange, change_to_report, find_change
from winnow.content_node.shard.store import PassageStore
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError, NotLoadedError
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import ReaderPool
from winnow.rpc.channel import open_channel
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.searcher import Read
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.replicas.remote import RemoteNode, RemoteSearcher
from winnow.telemetry.metrics import RpcMetrics
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_pb2_grpc

FILES = [("passages.sqlite", 0), ("tokens.npy", 0), ("postings.npy", 12), ("counts.npy", 12)]
"""Files that are read for each question, with its number of candidates by words. The others are in
memory.
"""


@dataclass
class Node:
    """A node, and what a front has of it."""

    directory: Path
    shard: StoredSegment
    remote: RemoteSearcher
    health: health_pb2_grpc.HealthStub
    looks: "asyncio.Queue[None]"
    status: ShardHealth
    question: EncodedQuestion
    registry: CollectorRegistry

    async def ask(self, by_words: int = 0) -> Read:
        """Retrieves by encoding and words, and reads what is best."""
        depth = RetrievalDepth(passages=3, candidates=12, by_words=by_words)
        return await self.remote.search(self.question, depth, Deadline.after(LONG))

    async def look(self) -> None:
        """Has the files looked at once, and waits until what was found has been told."""
        self.looks.put_nowait(None)
        await self.looks.join()

    async def serving(self) -> bool:
        """What its health says."""
        reply = await self.health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(name)


@pytest.fixture
async def node(indexes: dict[int, Path], bundle: Bundle, tmp_path: Path) -> AsyncIterator[Node]:
    directory = Path(shutil.copytree(indexes[1] / shard_name(0, 1), tmp_path / "shard"))
    # by the graph, as a large shard is: every text, id and token is read from the files
    shard = await asyncio.to_thread(open_shard, directory, 64, exact_up_to=0)
    registry = CollectorRegistry()
    metrics = NodeMetrics(registry)
    pool = ReaderPool(2, 2, metrics)
    reader = open_reader(bundle, Tokenizer(bundle.tokenizer).special)
    served = ServedShard()
    pace = Pace(2.0, ManualClock())
    served.serve(LocalSearcher(view_of(shard), reader, bundle, pool, pace=pace, metrics=metrics))
    server = Server(
        services=[SERVICE], interceptor=CallInterceptor(RpcMetrics(registry), quiet=True)
    )
    shard_pb2_grpc.add_ShardServiceServicer_to_server(
        ShardServicer(ServedShards([served], joint=joint_retrieval()), 60.0), server.grpc
    )
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    await server.set_serving(True)
    looks: asyncio.Queue[None] = asyncio.Queue()
    looked = False

    async def sleep(seconds: float) -> None:
        nonlocal looked
        if looked:
            looks.task_done()
        await looks.get()
        looked = True

    status = ShardHealth(served, server.set_serving, ShardMetrics(registry))
    watching = asyncio.create_task(
        watch_changes(shard.file_change, status.files_changed, 2.0, sleep)
    )
    vector = shard.store.vectors(shard.manifest.dimension)[0]
    words = tuple(Tokenizer(bundle.tokenizer).tokenise("who won the tour").ids)
    question = EncodedQuestion(
        text="who", token_ids=words, vector=vector, bundle_fingerprint=bundle.manifest.fingerprint
    )
    async with open_channel(address) as channel:
        remote, health = (
            RemoteNode(channel, address).searcher(None),
            health_pb2_grpc.HealthStub(channel),
        )
        yield Node(directory, shard, remote, health, looks, status, question, registry)
    watching.cancel()
    await server.drain(0)
    pool.close()


def replace(directory: Path, other: Path) -> None:
    """Another shard takes its place."""
    directory.rename(directory.with_name("before"))
    shutil.copytree(other, directory)


@pytest.mark.parametrize("how", ["replaced", "deleted"])
async def test_a_missing_directory_is_reported_and_answers_stay_the_same(
    how: str, node: Node, indexes: dict[int, Path]
) -> None:
    assert await node.serving()
    before = (await node.ask()).readings
    if how == "replaced":
        replace(node.directory, indexes[2] / shard_name(1, 2))
    else:
        shutil.rmtree(node.directory)
    # on many threads and connections, not only those that were in use already
    found = await asyncio.gather(*(node.ask() for _ in range(20)))
    assert all(read.readings == before for read in found)
    await node.look()
    assert not await node.serving()
    with pytest.raises(NotLoadedError, match="was replaced or deleted while it was served"):
        await node.remote.info(Deadline.after(LONG))
    assert node.metric("winnow_node_shard_changed") == 1
    assert node.metric("winnow_node_ready") == 0
    assert (await node.ask()).readings == before


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def written_over(path: Path) -> None:
    """The same size, other bytes: as `cp` and `rsync --inplace` leave it."""
    with path.open("rb+") as file:
        file.write(bytes(byte ^ 1 for byte in file.read()))
        file.seek(0)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize(("name", "by_words"), FILES)
@pytest.mark.parametrize("change", [cut_short, written_over, emptied])
async def test_a_file_that_changes_in_place_is_an_error_and_never_another_answer(
    change: Callable[[Path], None], name: str, by_words: int, node: Node
) -> None:
    await node.ask(by_words)
    change(node.directory / name)
    for outcome in await asyncio.gather(
        *(node.ask(by_words) for _ in range(20)), return_exceptions=True
    ):
        assert isinstance(outcome, NotLoadedError)
        assert name in str(outcome)
    await node.look()
    assert not await node.serving()
    with pytest.raises(NotLoadedError, match=f"{name} was overwritten while it was served"):
        await node.remote.info(Deadline.after(LONG))
    with pytest.raises(NotLoadedError, match=f"{name} was overwritten while it was served"):
        await node.ask(by_words)


@pytest.mark.graph
@pytest.mark.parametrize("name", ["graph.hnsw", "ends.npy", "frequencies.npy", "manifest.json"])
async def test_a_file_in_memory_that_is_cut_short_is_reported(name: str, node: Node) -> None:
    before = (await node.ask()).readings
    cut_short(node.directory / name)
    assert (await node.ask()).readings == before
    await node.look()
    assert not await node.serving()


async def test_a_directory_that_comes_back_is_served_again(node: Node) -> None:
    away = node.directory.rename(node.directory.with_name("away"))
    await node.look()
    assert not await node.serving()
    away.rename(node.directory)
    await node.look()
    assert await node.serving()
    assert (await node.remote.info(Deadline.after(LONG))).passages == 12
    assert node.metric("winnow_node_shard_changed") == 0


async def test_restored_files_do_not_restore_a_lost_journal(node: Node) -> None:
    await node.status.stopped_following(FileChange("the journal is another one", readable=True))
    aside = node.directory.with_name("aside")
    for one, other in ((node.directory, aside), (aside, node.directory)):
        one.rename(other)
        await node.look()
        assert not await node.serving()
    with pytest.raises(NotLoadedError, match="the journal is another one"):
        await node.remote.info(Deadline.after(LONG))
    assert (await node.ask()).readings


async def test_nothing_is_told_while_nothing_changes(node: Node) -> None:
    (node.directory / "passages.sqlite").chmod(0o400)
    os.link(node.directory / "tokens.npy", node.directory / "another name")
    await node.look()
    assert await node.serving()


async def test_unreadable_files_are_reported_as_a_change() -> None:
    told: list[FileChange | None] = []
    ended = asyncio.Event()

    async def tell(change: FileChange | None) -> None:
        told.append(change)
        ended.set()

    def look() -> FileChange | None:
        raise OSError("stale file handle")

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    watching = asyncio.create_task(watch_changes(look, tell, 2.0, sleep))
    await asyncio.wait_for(ended.wait(), 60)
    watching.cancel()
    assert [change.reason for change in told if change] == [
        "the files of the shard cannot be read: OSError('stale file handle')"
    ]


@dataclass
class Looked:
    path: Path
    is_altered: bool = False
    has_its_path: bool = True


def test_an_overwritten_file_is_worse_than_a_replaced_one_and_permanent() -> None:
    assert find_change([Looked(Path("a")), Looked(Path("b"))]) is None
    gone = find_change([Looked(Path("a"), has_its_path=False), Looked(Path("b"))])
    assert gone is not None
    assert gone.readable
    worse = find_change([Looked(Path("a"), has_its_path=False), Looked(Path("b"), is_altered=True)])
    assert worse is not None
    assert not worse.readable
    assert worse.reason.startswith("b was overwritten")
    assert change_to_report(gone, None) is None
    assert change_to_report(worse, None) == worse
    assert change_to_report(worse, gone) == worse
    assert change_to_report(None, gone) == gone


@pytest.mark.graph
def test_a_file_that_is_written_to_while_it_is_loaded_is_refused(
    indexes: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Path(shutil.copytree(indexes[1] / shard_name(0, 1), tmp_path / "shard"))
    check = PassageStore.check

    def write_then_check(store: PassageStore, *values: int) -> None:
        written_over(directory / "graph.hnsw")
        check(store, *values)

    monkeypatch.setattr(PassageStore, "check", write_then_check)
    with pytest.raises(ArtefactError, match=r"graph\.hnsw was overwritten"):
        open_shard(directory, 64)
