"""Building an index out of another one."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from conftest import PASSAGES, Recorder

from content_node.build.builder import BuildPlan, build_index
from content_node.build.verify import verify_index
from content_node.shard import open_shard
from content_node.shard.manifest import (
    INDEX_FILE,
    SHARD_FILE,
    read_index_manifest,
    shard_name,
)
from winnow.bundle import Bundle
from winnow.checksum import sha256
from winnow.errors import ArtefactError


def stored(index: Path, shards: int) -> dict[str, tuple[object, ...]]:
    """Everything that is stored of every passage but for its row; every shard has words."""
    found = {}
    for shard in range(shards):
        directory = index / shard_name(shard, shards)
        assert open_shard(directory, ef=64).words is not None
        with contextlib.closing(sqlite3.connect(directory / "passages.sqlite")) as connection:
            for _, name, *rest in connection.execute("SELECT * FROM passages"):
                found[name] = tuple(rest)
    return found


class Interrupted(Recorder):
    """Ctrl-C after the first shard was taken over."""

    def advance(self, steps: int) -> None:
        super().advance(steps)
        raise KeyboardInterrupt


def test_passages_keep_their_vectors_in_other_shards(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    manifest = build_index(BuildPlan(indexes[3], tmp_path / "two", 2, 1), bundle, recorder)
    assert (manifest.passages, manifest.shards) == (len(PASSAGES), 2)
    assert stored(tmp_path / "two", 2) == stored(indexes[3], 3)
    assert not any(report.faults for report in verify_index(tmp_path / "two", 50, 0.95))
    assert ("encoding passages", len(PASSAGES), len(PASSAGES)) in recorder.stages


def test_an_index_from_before_there_were_words_gets_them(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    old = tmp_path / "old"
    shutil.copytree(indexes[1], old)
    path = old / shard_name(0, 1) / SHARD_FILE
    content = json.loads(path.read_text())
    del content["words"]
    path.write_text(json.dumps(content))
    assert open_shard(path.parent, ef=64).words is None
    build_index(BuildPlan(old, tmp_path / "new", 1, 1), bundle, recorder)
    assert stored(tmp_path / "new", 1) == stored(indexes[1], 1)


def test_an_interrupted_takeover_begins_anew_and_ends_well(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(indexes[3], tmp_path / "odd #1 ?%20" / "index", 2, 1)
    plan.target.parent.mkdir()
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, Interrupted())
    manifest = build_index(plan, bundle, recorder)
    assert manifest.source == read_index_manifest(indexes[3]).source
    assert stored(plan.target, 2) == stored(indexes[3], 3)


def test_a_shard_of_another_index_is_not_taken_over(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(indexes[1], mixed)
    path = mixed / shard_name(0, 1) / SHARD_FILE
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "index_id": "other"}))
    with pytest.raises(ArtefactError, match="it belongs to index other"):
        build_index(BuildPlan(mixed, tmp_path / "new", 1, 1), bundle, recorder)


def test_words_that_are_not_those_of_the_passages_are_a_fault(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(indexes[1], copy)
    directory = copy / shard_name(0, 1)
    tokens = np.load(directory / "tokens.npy")
    tokens[0] += 1
    np.save(directory / "tokens.npy", tokens)
    content = json.loads((directory / SHARD_FILE).read_text())
    content["files"]["tokens.npy"]["sha256"] = sha256(directory / "tokens.npy")
    (directory / SHARD_FILE).write_text(json.dumps(content))
    [report] = verify_index(copy, 12, 0.9)
    assert report.faults == ("its words are not those of its passages",)


def test_an_index_of_another_encoder_is_refused(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    other = tmp_path / "other"
    shutil.copytree(indexes[1], other)
    content = json.loads((other / INDEX_FILE).read_text())
    (other / INDEX_FILE).write_text(json.dumps({**content, "encoding_fingerprint": "other"}))
    with pytest.raises(ArtefactError, match=r"was encoded by bundle .*\(other\)"):
        build_index(BuildPlan(other, tmp_path / "new", 1, 1), bundle, recorder)


def test_damaged_passages_are_not_taken_over(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(indexes[1], damaged)
    store = damaged / shard_name(0, 1) / "passages.sqlite"
    store.write_bytes(store.read_bytes()[:-1] + b"!")
    with pytest.raises(ArtefactError, match="is damaged"):
        build_index(BuildPlan(damaged, tmp_path / "new", 1, 1), bundle, recorder)
    assert not (tmp_path / "new").exists()
