"""A build without a number of shards chooses one that suits the number of passages."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import PASSAGES, InterruptedAfterStaging, Recorder
from fed_index import FedIndex, held, tombstones

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.stage_source import chosen_shards
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.shard import hnsw
from winnow.content_node.shard.manifest import read_index_manifest, read_shard_manifest
from winnow.domain.shard import (
    GRAPHLESS_UP_TO,
    MAX_SHARDS,
    PASSAGES_PER_SHARD,
    shard_name,
    suitable_shards,
)
from winnow.errors import ArtefactError

PER_SHARD = 5
CHOSEN = 3
"""Shards of all passages, at most `PER_SHARD` each."""


@pytest.fixture
def plan(passages_file: Path, tmp_path: Path) -> BuildPlan:
    return BuildPlan(
        source=passages_file, target=tmp_path / "index", threads=1, passages_per_shard=PER_SHARD
    )


def passages_of(index: Path) -> list[int]:
    """The number of passages of every shard."""
    shards = read_index_manifest(index).shards
    directories = [index / shard_name(shard, shards) for shard in range(shards)]
    return [read_shard_manifest(directory).passages for directory in directories]


@pytest.mark.parametrize(
    ("passages", "shards"),
    [
        (1, 1),
        (PASSAGES_PER_SHARD, 1),
        (PASSAGES_PER_SHARD + 1, 2),
        (21_015_324, 421),
        (PASSAGES_PER_SHARD * MAX_SHARDS, MAX_SHARDS),
        (10**10, MAX_SHARDS),
    ],
)
def test_shards_suit_the_number_of_passages(passages: int, shards: int) -> None:
    assert suitable_shards(passages) == shards


def test_without_hnswlib_a_large_shard_is_refused_before_passages_are_encoded(
    plan: BuildPlan, bundle: Bundle, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "module", None)
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 1)
    with pytest.raises(ArtefactError, match=r"needs hnswlib, which is not installed: .*--shards"):
        build_index(plan, bundle, recorder)
    assert "encoding passages" not in [stage for stage, *_ in recorder.stages]
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 100)
    assert build_index(plan, bundle, recorder).shards == CHOSEN
    assert not list(plan.target.rglob("graph.hnsw"))
    assert not any(report.faults for report in verify_index(plan.target, 50, 0.95))


def test_a_build_that_was_refused_for_large_shards_goes_on_with_more_shards(
    plan: BuildPlan, bundle: Bundle, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "module", None)
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 1)
    with pytest.raises(ArtefactError, match="--shards"):
        build_index(plan, bundle, recorder)
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 100)
    assert build_index(replace(plan, shards=CHOSEN + 1), bundle, recorder).shards == CHOSEN + 1
    assert sum(passages_of(plan.target)) == len(PASSAGES)
    assert not any(report.faults for report in verify_index(plan.target, 50, 0.95))


@pytest.mark.graph
def test_without_hnswlib_shards_are_small_enough_to_need_no_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = BuildPlan(source=tmp_path, target=tmp_path, threads=1)
    passages = PASSAGES_PER_SHARD
    assert chosen_shards(passages, plan) == 1
    monkeypatch.setattr(hnsw, "module", None)
    assert passages / chosen_shards(passages, plan) < GRAPHLESS_UP_TO


def test_few_passages_make_one_shard(
    bundle: Bundle, passages_file: Path, tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(source=passages_file, target=tmp_path / "index", threads=1)
    assert build_index(plan, bundle, recorder).shards == 1
    assert recorder.chosen == [1]


def test_a_chosen_number_makes_the_same_shards_as_a_given_one(
    bundle: Bundle, plan: BuildPlan, indexes: dict[int, Path], recorder: Recorder
) -> None:
    manifest = build_index(plan, bundle, recorder)
    assert manifest.shards == CHOSEN
    assert recorder.chosen == [CHOSEN]
    assert passages_of(plan.target) == passages_of(indexes[CHOSEN])
    assert not any(report.faults for report in verify_index(plan.target, 50, 0.95))


def test_a_given_number_is_kept(bundle: Bundle, plan: BuildPlan, recorder: Recorder) -> None:
    assert build_index(replace(plan, shards=2), bundle, recorder).shards == 2
    assert recorder.chosen == []


def test_passages_are_counted_and_not_rows(
    bundle: Bundle, plan: BuildPlan, tmp_path: Path, recorder: Recorder
) -> None:
    """A document is cut into several passages; a bad row is none."""
    words = " ".join(f"word{n}" for n in range(1_650))
    source = tmp_path / "documents.jsonl"
    source.write_text(json.dumps({"id": "long", "text": words}) + "\n" + "no row\n" * 20)
    plan = replace(plan, source=source, cut_documents=True, skip_bad_rows=True)
    manifest = build_index(plan, bundle, recorder)
    assert (manifest.passages, manifest.bad_rows, manifest.shards) == (11, 20, 3)


def test_a_resumed_build_keeps_the_chosen_number(bundle: Bundle, plan: BuildPlan) -> None:
    """Even if the version of Winnow that resumes it chooses another one."""
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, InterruptedAfterStaging())
    second = Recorder()
    manifest = build_index(replace(plan, passages_per_shard=100), bundle, second)
    assert manifest.shards == CHOSEN
    assert second.chosen == []
    assert sum(passages_of(plan.target)) == len(PASSAGES)


def test_a_build_goes_on_with_another_number_of_shards(
    bundle: Bundle, plan: BuildPlan, recorder: Recorder
) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, InterruptedAfterStaging())
    assert build_index(replace(plan, shards=CHOSEN + 1), bundle, recorder).shards == CHOSEN + 1
    assert sum(passages_of(plan.target)) == len(PASSAGES)


def test_a_build_with_a_given_number_is_not_resumed_without_it(
    bundle: Bundle, plan: BuildPlan, recorder: Recorder
) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_index(replace(plan, shards=CHOSEN), bundle, InterruptedAfterStaging())
    with pytest.raises(ArtefactError, match="build with another --shards"):
        build_index(plan, bundle, recorder)


def test_a_fed_index_is_cut_by_the_passages_that_it_holds_now(
    bundle: Bundle, plan: BuildPlan, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    fed = FedIndex(indexes[1], tmp_path / "fed")
    for number in range(4):
        fed.put(f"new {number}", "a text")
    fed.delete(PASSAGES[0][0], 7)
    fed.close()
    manifest = build_index(replace(plan, source=fed.index), bundle, recorder)
    assert (manifest.passages, manifest.shards) == (len(PASSAGES) + 3, CHOSEN)
    assert held(plan.target) == fed.held
    assert tombstones(plan.target) == fed.tombstones


def test_a_build_that_an_older_version_staged_goes_on(
    bundle: Bundle, plan: BuildPlan, indexes: dict[int, Path], recorder: Recorder
) -> None:
    plan = replace(plan, shards=CHOSEN)
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, InterruptedAfterStaging())
    stage_as_before(plan.target.with_name("index.partial") / "staging.sqlite")
    build_index(plan, bundle, recorder)
    assert "reading passages" not in [stage for stage, *_ in recorder.stages]
    assert passages_of(plan.target) == passages_of(indexes[CHOSEN])


def stage_as_before(staging: Path) -> None:
    """Alters a staging database to that of a version whose passages had their shards."""
    with sqlite3.connect(staging) as connection:
        connection.execute("ALTER TABLE passages ADD COLUMN shard INTEGER NOT NULL DEFAULT 0")
        connection.execute(
            "UPDATE passages SET shard = (SELECT shard FROM shards WHERE shards.seq = passages.seq)"
        )
        connection.execute("DROP TABLE shards")
        connection.execute("DELETE FROM plan WHERE key = 'shards'")
    connection.close()
