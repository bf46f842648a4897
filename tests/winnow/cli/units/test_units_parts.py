"""Parts of measuring a front: what of its time is for what, and the shards that are not there."""

import json
from pathlib import Path

import grpc
import pytest
from tenacious import LONG
from typer.testing import CliRunner
from units_made import units

from winnow.cli.commands import build_app
from winnow.cli.plan.formulae import reading_shards
from winnow.cli.units import fake_nodes
from winnow.cli.units.fake_nodes import RecordedReplies, fake_shards
from winnow.cli.units.fronts import fit_front_costs, write_synthetic_passages
from winnow.cli.units.measuring import processor_name
from winnow.cli.units.report import tables
from winnow.v1 import shard_pb2, shard_pb2_grpc

SAID = RecordedReplies(
    shard_pb2.GetShardInfoResponse(shard=0, shards=1, passages=10).SerializeToString(),
    shard_pb2.RetrieveResponse(
        hits=[shard_pb2.Hit(row=3, passage_id="p", distance=1.0)], candidate_distances=[1.0, 1.2]
    ).SerializeToString(),
    shard_pb2.ReadResponse(readings=[shard_pb2.Reading(passage_id="p")]).SerializeToString(),
)


def test_measured_times_are_split_into_their_parts() -> None:
    spent = {n: 2.0 + 0.3 * n + 0.001 * n**2 + 0.5 for n in (1, 8, 32, 128)}
    found = fit_front_costs(spent, 0.5)
    assert found.question_ms == pytest.approx(2.0)
    assert found.shard_ms == pytest.approx(0.3)
    assert found.pair_us == pytest.approx(1.0)
    assert found.read_ms == 0.5


def test_nothing_costs_less_than_nothing() -> None:
    found = fit_front_costs({1: 3.0, 8: 3.0, 32: 3.4, 128: 4.0}, 0.1)
    assert min(found.question_ms, found.shard_ms, found.pair_us) >= 0


def test_as_many_shards_read_as_hold_a_passage() -> None:
    assert reading_shards(1, 8) == pytest.approx(1)
    assert reading_shards(2, 2) == pytest.approx(1.5)


@pytest.fixture(autouse=True)
def _long_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_nodes, "_START_TIMEOUT", LONG)


async def test_fake_shards_say_what_one_said_each_with_its_own_number() -> None:
    with fake_shards(SAID, 2) as addresses:
        numbers, distances = [], set()
        for address in addresses:
            async with grpc.aio.insecure_channel(address) as channel:
                stub = shard_pb2_grpc.ShardServiceStub(channel)
                info = await stub.GetShardInfo(
                    shard_pb2.GetShardInfoRequest(), timeout=LONG, wait_for_ready=True
                )
                found = await stub.Retrieve(shard_pb2.RetrieveRequest(), timeout=LONG)
                read = await stub.Read(
                    shard_pb2.ReadRequest(hits=[found.hits[0]] * 3), timeout=LONG
                )
            numbers.append((info.shard, info.shards, info.index_passages))
            distances.add(found.hits[0].distance)
            assert len(read.readings) == 3
    assert numbers == [(0, 2, 20), (1, 2, 20)]
    assert len(distances) == 2


async def test_a_fake_node_may_have_several_shards() -> None:
    with fake_shards(SAID, 3, per_node=2) as addresses:
        numbers = []
        for address in addresses:
            async with grpc.aio.insecure_channel(address) as channel:
                stub = shard_pb2_grpc.ShardServiceStub(channel)
                listed = await stub.ListShards(
                    shard_pb2.ListShardsRequest(), timeout=LONG, wait_for_ready=True
                )
                own = [info.shard for info in listed.shards]
                request = shard_pb2.RetrieveFromShardsRequest(
                    request=shard_pb2.RetrieveRequest(passages=1),
                    shards=[shard_pb2.RequestedShard(shard=shard) for shard in own],
                )
                reply = await stub.RetrieveFromShards(request, timeout=LONG)
            numbers.append(own)
            assert [each.HasField("retrieved") for each in reply.results] == [True] * len(own)
            # as a node does, it leaves out hits that its other shards outrank
            assert sum(len(each.retrieved.hits) for each in reply.results) == 1
    assert numbers == [[0, 1], [2]]


def test_passages_to_measure_with_are_json_lines(tmp_path: Path) -> None:
    write_synthetic_passages(tmp_path / "passages.jsonl")
    lines = (tmp_path / "passages.jsonl").read_text().splitlines()
    assert {"id", "title", "text"} == json.loads(lines[0]).keys()


def test_the_processor_is_named_with_what_it_can_do(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("model name\t: Fast\nflags\t\t: sse avx512_vnni\n\nmodel name\t: Fast\n")
    assert processor_name(path) == "Fast, avx512_vnni"
    assert processor_name(tmp_path / "missing")


def test_units_are_shown_as_tables() -> None:
    assert [table.row_count for table in tables(units())] == [9, 3, 7]


@pytest.mark.parametrize("name", ["unit-costs", "units"])
def test_unit_costs_are_measured_below_bench_by_both_names(name: str) -> None:
    words = ["bench", name]
    shown = CliRunner().invoke(build_app(words), [*words, "--help"], env={"COLUMNS": "100"})
    assert shown.exit_code == 0
    assert "--out" in shown.output
