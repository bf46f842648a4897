"""The shards of one content node, over real gRPC."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import structlog
from damaged_files import flip_bit
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from tenacious import LONG, turn

from winnow.bundle import Bundle
from winnow.cli.local.cluster import load_failure
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.startup_checks import shards_to_serve
from winnow.convert import shard_feed as convert
from winnow.deadline import Deadline
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import NodeReport, shard_name, shard_of
from winnow.domain.write import Outcome
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotFoundError,
    NotLoadedError,
    UnavailableError,
    WinnowError,
)
from winnow.index_directory import shard_directories
from winnow.inference.encoder import open_question_encoder
from winnow.reading.lower_layers import LowerLayers
from winnow.rpc.channel import open_channel
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.rpc.status import error_of
from winnow.searcher import Retrieved
from winnow.settings.errors import SettingsError
from winnow.shard_service.feed_servicer import FEED_SERVICE, ShardFeedServicer
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.stateless.answer.choose import best_overall
from winnow.stateless.replicas.remote import RemoteNode
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.text.tokenizer import Tokenizer
from winnow.v1 import shard_feed_pb2, shard_feed_pb2_grpc, shard_pb2, shard_pb2_grpc


@dataclass
class Node:
    """A running node, as its callers see it."""

    shards: RunningShards
    remote: RemoteNode
    feed: Any
    registry: CollectorRegistry
    health: list[bool] = field(default_factory=list)
    """Every change of the health of the process."""

    async def report(self) -> NodeReport:
        return await self.remote.report(Deadline.after(LONG))


@contextlib.asynccontextmanager
async def serving(shards: Sequence[Path], bundle: Bundle, **flags: Any) -> AsyncIterator[Node]:
    registry, health = CollectorRegistry(), list[bool]()
    settings = NodeSettings.load({"shard": list(shards), **flags}, None, {})
    directories = shards_to_serve(settings)
    parts = open_node_parts(
        settings, bundle, registry, RuntimeMetrics(registry), shards=len(directories)
    )

    async def set_serving(serving: bool) -> None:
        health.append(serving)

    running = RunningShards(directories, parts, registry, set_serving)
    interceptor = CallInterceptor(RpcMetrics(registry), quiet=True)
    server = Server(services=[SERVICE, FEED_SERVICE], interceptor=interceptor)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(
        ShardServicer(running.served, LONG), server.grpc
    )
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(
        ShardFeedServicer(running.served, LONG), server.grpc
    )
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    try:
        async with open_channel(address) as channel:
            feed = shard_feed_pb2_grpc.ShardFeedServiceStub(channel)
            yield Node(running, RemoteNode(channel, address), feed, registry, health)
    finally:
        await server.drain(0)
        await running.close()
        parts.close()


def encoded(text: str, bundle: Bundle) -> EncodedQuestion:
    tokenizer = Tokenizer(bundle.tokenizer)
    ids = tokenizer.tokenise(text).ids
    return EncodedQuestion(
        text=text,
        token_ids=ids,
        vector=open_question_encoder(bundle, tokenizer.special).question(ids),
        bundle_fingerprint=bundle.manifest.fingerprint,
    )


async def test_a_node_lists_the_shards_that_it_loads_and_then_serves(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    async with serving(shard_directories(indexes[3])[:2], bundle) as node:
        loading = await node.report()
        assert not loading.infos
        assert [fault.shard for fault in loading.faults] == [0, 1]
        assert not any(isinstance(fault.error, NotLoadedError) for fault in loading.faults)
        await node.shards.load()
        loaded = await node.report()
        assert not loaded.faults
        assert [(info.shard, info.shards) for info in loaded.infos] == [(0, 3), (1, 3)]
        described = await node.remote.searcher(1).info(Deadline.after(LONG))
        assert described.generation == loaded.infos[1].generation


async def test_a_call_names_its_shard_unless_the_node_has_only_one(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    shards = shard_directories(indexes[3])
    async with serving(shards[:2], bundle) as node:
        await node.shards.load()
        with pytest.raises(IdentityError, match="2 shards, and the call names none"):
            await node.remote.searcher(None).info(Deadline.after(LONG))
        with pytest.raises(UnavailableError, match="does not serve shard 2"):
            await node.remote.searcher(2).info(Deadline.after(LONG))
    async with serving(shards[2:], bundle) as node:
        await node.shards.load()
        assert (await node.remote.searcher(None).info(Deadline.after(LONG))).shard == 2


@pytest.mark.bundle
async def test_shards_retrieve_together_as_each_does_alone(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[8], tmp_path / "index"))
    shards = shard_directories(index)
    flip_bit(shards[3] / "passages.sqlite", 5_000)
    question = encoded("who won the tour", bundle)
    depth, until = RetrievalDepth(passages=5, candidates=20, by_words=10), Deadline.after(LONG)
    async with serving(shards, bundle) as node:
        await node.shards.load()
        await node.report()
        searchers = [node.remote.searcher(shard) for shard in range(9)]
        together = await asyncio.gather(
            *(each.retrieve(question, depth, until) for each in searchers), return_exceptions=True
        )
        labels = {"method": "RetrieveFromShards", "status": "OK"}
        assert node.registry.get_sample_value("winnow_request_seconds_count", labels) == 1
        assert isinstance(together[3], NotLoadedError)
        assert node.remote.address in str(together[3])
        assert type(together[8]) is UnavailableError
        alone = {
            shard: await searchers[shard].retrieve_alone(question, depth, until)
            for shard in sorted({*range(8)} - {3})
        }
        shared = {n: each for n, each in enumerate(together) if isinstance(each, Retrieved)}
        assert shared.keys() == alone.keys()
        assert best_overall(shared, depth) == best_overall(alone, depth)
        for shard, own in alone.items():
            found = shared[shard]
            assert set(found.hits) <= set(own.hits)
            assert (found.passages, found.log_id) == (own.passages, own.log_id)
        assert sum(len(own.hits) for own in shared.values()) < sum(
            len(own.hits) for own in alone.values()
        )
        for requested, reason in (((), "0 is not between 1 and 64"), ((1, 1), "shard 1 occurs")):
            names = [shard_pb2.RequestedShard(shard=shard) for shard in requested]
            request = shard_pb2.RetrieveFromShardsRequest(shards=names)
            with pytest.raises(WinnowError, match=f"shards: {reason}"):
                await node.remote.call(node.remote.stub.RetrieveFromShards(request))


@pytest.mark.bundle
async def test_the_lower_layers_run_once_for_a_question_however_many_shards_it_reads_from(
    indexes: dict[int, Path], bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed, compute = [], LowerLayers.question_states

    def record(self: LowerLayers, ids: Sequence[int]) -> NDArray[np.float32]:
        computed.append(tuple(ids))
        return compute(self, ids)

    monkeypatch.setattr(LowerLayers, "question_states", record)
    question, until = encoded("who won the tour", bundle), Deadline.after(LONG)
    async with serving(shard_directories(indexes[3]), bundle) as node:
        await node.shards.load()
        await node.report()
        read = 0
        for shard in range(3):
            searcher = node.remote.searcher(shard)
            found = await searcher.retrieve(question, RetrievalDepth(passages=2), until)
            read += len((await searcher.read(question, found.hits, until)).readings)
    assert read > 3
    assert computed.count(question.token_ids) == 1


async def test_a_shard_that_cannot_be_loaded_is_named_and_the_others_serve(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[3], tmp_path / "index"))
    first, second, third = shard_directories(index)
    flip_bit(second / "passages.sqlite", 5_000)
    shutil.rmtree(third)
    async with serving([first, second, third], bundle) as node:
        await node.shards.load()
        report = await node.report()
        assert [info.shard for info in report.infos] == [0]
        assert [fault.shard for fault in report.faults] == [1, 2]
        assert all(isinstance(fault.error, NotLoadedError) for fault in report.faults)
        for fault, shard in zip(report.faults, (second, third), strict=True):
            assert str(shard) in str(fault.error)
        failure = await load_failure(node.remote.address)
        assert failure is not None
        assert not failure.of_all
        assert str(second) in failure.reason


async def test_a_shard_without_a_snapshot_is_named_and_the_others_serve(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    first = shard_directories(indexes[2])[0]
    missing = tmp_path / shard_name(1, 2)
    async with serving([first, missing], bundle, pull=str(tmp_path / "snapshots")) as node:
        with structlog.testing.capture_logs() as logged:
            await node.shards.load()
        report = await node.report()
        assert [info.shard for info in report.infos] == [0]
        (fault,) = report.faults
        assert fault.shard == 1
        assert isinstance(fault.error, NotLoadedError)
        (failed,) = [each for each in logged if each["log_level"] == "error"]
        assert failed["directory"] == str(missing)


async def test_a_node_ends_if_no_shard_has_a_snapshot(bundle: Bundle, tmp_path: Path) -> None:
    missing = [tmp_path / shard_name(shard, 2) for shard in range(2)]
    async with serving(missing, bundle, pull=str(tmp_path / "snapshots")) as node:
        with pytest.raises(NotFoundError):
            await node.shards.load()


async def test_a_node_without_any_loaded_shard_names_them_all(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[2], tmp_path / "index"))
    shards = list(shard_directories(index))
    for shard in shards:
        flip_bit(shard / "passages.sqlite", 5_000)
    async with serving(shards, bundle) as node:
        assert await load_failure(node.remote.address) is None
        with pytest.raises(NotLoadedError, match=r"00000-of.*00001-of"):
            await node.shards.load()
        failure = await load_failure(node.remote.address)
        assert failure is not None
        assert failure.of_all


@pytest.mark.parametrize("place", [0, 2])
async def test_a_shard_of_another_index_is_left_out_wherever_it_is_listed(
    place: int, indexes: dict[int, Path], bundle: Bundle
) -> None:
    shards = shard_directories(indexes[3])[:2]
    shards.insert(place, shard_directories(indexes[8])[5])
    async with serving(shards, bundle) as node:
        await node.shards.load()
        report = await node.report()
        assert [info.shard for info in report.infos] == [0, 1]
        (fault,) = report.faults
        assert fault.shard == 5
        assert "instead of shard 5 of index" in str(fault.error)


async def test_a_shard_is_served_once(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    first, second, _ = shard_directories(indexes[3])
    copy = Path(shutil.copytree(first, tmp_path / "copy"))
    async with serving([first, second, copy], bundle) as node:
        await node.shards.load()
        report = await node.report()
        assert sorted(info.shard for info in report.infos) == [0, 1]
        (fault,) = report.faults
        assert "a node serves one copy of a shard" in str(fault.error)


async def test_a_shard_is_served_although_one_of_its_number_is_left_out(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    first, second, _ = shard_directories(indexes[3])
    other = shard_directories(indexes[8])[0]
    async with serving([other, first, second], bundle) as node:
        await node.shards.load()
        report = await node.report()
        assert [fault.shard for fault in report.faults] == [0]
        described = await node.remote.searcher(0).info(Deadline.after(LONG))
        assert described.index_id == report.infos[0].index_id


async def test_directories_of_one_name_have_metrics_of_their_own(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    first = shard_directories(indexes[3])[0]
    copy = Path(shutil.copytree(first, tmp_path / first.name))
    async with serving([first, copy], bundle) as node:
        await node.shards.load()
        ready = [
            node.registry.get_sample_value("winnow_node_ready", {"shard": str(each)})
            for each in (first, copy)
        ]
        assert sorted(map(str, ready)) == ["0.0", "1.0"]


async def test_the_process_is_healthy_while_a_shard_is_served(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    async with serving(shard_directories(indexes[3])[:2], bundle) as node:
        await node.shards.load()
        first, second = node.shards.all
        for shard in (first, second):
            await shard._status.files_changed(FileChange("it was deleted", readable=True))
        report = await node.report()
        assert [fault.shard for fault in report.faults] == [0, 1]
        await first._status.files_changed(None)
        assert node.health == [True, False, True]


async def test_a_leaving_process_stays_unhealthy_when_a_shard_changes(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    async with serving(shard_directories(indexes[3])[:2], bundle) as node:
        await node.shards.load()
        node.shards.start_leaving()
        first, _ = node.shards.all
        await first._status.stopped_following(FileChange("the journal is gone", readable=True))
        assert node.health == []


async def test_an_error_of_one_shard_is_raised_after_all_were_closed(
    indexes: dict[int, Path], bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    async def fail() -> None:
        raise UnavailableError("the journal is gone")

    async def close_later() -> None:
        await turn()
        closed.append("second")

    async with serving(shard_directories(indexes[3])[:2], bundle) as node:
        with monkeypatch.context() as patch:
            for shard, close in zip(node.shards.all, (fail, close_later), strict=True):
                patch.setattr(shard, "close", close)
            with pytest.raises(UnavailableError, match="the journal is gone"):
                await node.shards.close()
        assert closed == ["second"]


async def test_writes_reach_their_shard(
    indexes: dict[int, Path], bundle: Bundle, tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[3], tmp_path / "index"))
    async with serving(shard_directories(index), bundle, feed=True) as node:
        await node.shards.load()
        infos = (await node.report()).infos
        for shard in range(3):
            own = next(f"p{n}" for n in range(100) if shard_of(f"p{n}", 3) == shard)
            request = shard_feed_pb2.WriteRequest(
                index_id=infos[shard].index_id,
                shard=shard,
                encoding_fingerprint=bundle.manifest.encoding_fingerprint,
                writes=[shard_feed_pb2.EncodedWrite(id=own, delete=True)],
            )
            (written,) = convert.written_of_message(await node.feed.Write(request), 1)
            assert written.outcome is Outcome.UNCHANGED
        counts = shard_feed_pb2.GetWordCountsRequest(changes_only=True, shard=2)
        assert (await node.feed.GetWordCounts(counts)).sequence == 0
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await node.feed.GetWordCounts(shard_feed_pb2.GetWordCountsRequest())
        error = error_of(caught.value.code(), caught.value.details() or "")
        assert isinstance(error, IdentityError)


async def test_metrics_of_several_shards_say_which_shard(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    async with serving(shard_directories(indexes[3])[:2], bundle) as node:
        await node.shards.load()
        ready = [
            node.registry.get_sample_value("winnow_node_ready", {"shard": str(shard)})
            for shard in range(3)
        ]
        assert ready == [1, 1, None]


def settings(**flags: Any) -> NodeSettings:
    return NodeSettings.load(flags, None, {})


def test_a_directory_of_shards_stands_for_all_of_them(indexes: dict[int, Path]) -> None:
    shards = shard_directories(indexes[3])
    assert list(shards_to_serve(settings(shards=indexes[3]))) == shards
    assert list(shards_to_serve(settings(shard=shards[:1], shards=indexes[3]))) == shards


def test_several_shards_are_restored_from_the_snapshots_of_their_index(tmp_path: Path) -> None:
    names = [shard_name(shard, 2) for shard in range(2)]
    one = settings(shard=tmp_path / "any", pull="s3://bucket/index/shard")
    assert shards_to_serve(one) == {tmp_path / "any": "s3://bucket/index/shard"}
    two = settings(shard=[tmp_path / name for name in names], pull="s3://bucket/index/")
    assert shards_to_serve(two) == {tmp_path / n: f"s3://bucket/index/{n}" for n in names}


def test_a_node_without_shards_says_what_to_name(indexes: dict[int, Path], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--shard DIRECTORY or --shards DIRECTORY"):
        shards_to_serve(settings())
    with pytest.raises(ArtefactError, match="there is no shard in"):
        shards_to_serve(settings(shards=tmp_path))
    with pytest.raises(ArtefactError, match=r"cannot list the shards in .*nowhere"):
        shards_to_serve(settings(shards=tmp_path / "nowhere"))
    with pytest.raises(ArtefactError, match=r"is an index of 3 shards: --shards .* serves all"):
        shards_to_serve(settings(shard=indexes[3]))


@pytest.mark.parametrize("written", ['"a"', '["a"]'])
def test_one_shard_may_be_written_without_a_list(written: str, tmp_path: Path) -> None:
    file = tmp_path / "winnow.toml"
    file.write_text(f"[node]\nshard = {written}\n")
    assert NodeSettings.load({}, file, {}).shard == [Path("a")]
    assert NodeSettings.load({}, None, {"WINNOW_NODE_SHARD": "a,b"}).shard == [Path("a"), Path("b")]
