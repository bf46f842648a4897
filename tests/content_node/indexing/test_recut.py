"""Building an index out of another one."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from conftest import PASSAGES, Recorder

from winnow.bundle import Bundle
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest, read_shard_manifest
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.files.opened import sha256

MANIFEST = f"{shard_name(0, 1)}/{SHARD_FILE}"
"""Of the only shard of an index."""


def stored(index: Path, shards: int) -> dict[str, tuple[object, ...]]:
    """Everything that is stored of every passage but for its row; every shard has words."""
    found = {}
    for shard in range(shards):
        directory = index / shard_name(shard, shards)
        assert open_shard(directory, ef=64).manifest.words is not None
        with contextlib.closing(sqlite3.connect(directory / "passages.sqlite")) as connection:
            for _, name, *rest in connection.execute("SELECT * FROM passages"):
                found[name] = tuple(rest)
    return found


def altered(index: Path, copy: Path, name: str, **values: object) -> Path:
    """A copy of an index, with values of one of its manifests replaced; None takes one out."""
    shutil.copytree(index, copy)
    content = {**json.loads((copy / name).read_text()), **values}
    kept = {key: value for key, value in content.items() if value is not None}
    (copy / name).write_text(to_checksummed_json(kept))
    vouch_for_shards(copy)
    return copy


def vouch_for_shards(index: Path) -> None:
    """Makes the manifest of an index name its shards as they are now."""
    content = json.loads((index / INDEX_FILE).read_text())
    shards = (index / shard_name(n, content["shards"]) for n in range(content["shards"]))
    content["manifests"] = [read_shard_manifest(shard).checksum for shard in shards]
    (index / INDEX_FILE).write_text(to_checksummed_json(content))


class Interrupted(Recorder):
    """Ctrl-C after the first shard was taken over."""

    def advance(self, steps: int) -> None:
        super().advance(steps)
        raise KeyboardInterrupt


def test_passages_keep_their_vectors_in_other_shards(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    manifest = build_index(
        BuildPlan(source=indexes[3], target=tmp_path / "two", shards=2, threads=1), bundle, recorder
    )
    assert (manifest.passages, manifest.shards) == (len(PASSAGES), 2)
    assert stored(tmp_path / "two", 2) == stored(indexes[3], 3)
    assert not any(report.faults for report in verify_index(tmp_path / "two", 50, 0.95))
    assert ("encoding passages", len(PASSAGES), len(PASSAGES)) in recorder.stages


def test_an_index_from_before_there_were_words_gets_them(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    before = dict.fromkeys(("words", "rows", "sequence", "log_id"))
    old = altered(indexes[1], tmp_path / "old", MANIFEST, format=2, **before)
    assert open_shard(old / shard_name(0, 1), ef=64).manifest.words is None
    build_index(
        BuildPlan(source=old, target=tmp_path / "new", shards=1, threads=1), bundle, recorder
    )
    assert stored(tmp_path / "new", 1) == stored(indexes[1], 1)


def test_an_interrupted_takeover_is_restarted_and_completes(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    plan = BuildPlan(
        source=indexes[3], target=tmp_path / "odd #1 ?%20" / "index", shards=2, threads=1
    )
    plan.target.parent.mkdir()
    with pytest.raises(KeyboardInterrupt):
        build_index(plan, bundle, Interrupted())
    manifest = build_index(plan, bundle, recorder)
    assert manifest.source == read_index_manifest(indexes[3]).source
    assert stored(plan.target, 2) == stored(indexes[3], 3)


def test_a_shard_of_another_index_is_not_taken_over(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    mixed = altered(indexes[1], tmp_path / "mixed", MANIFEST, index_id="other")
    with pytest.raises(ArtefactError, match="it belongs to index other"):
        build_index(
            BuildPlan(source=mixed, target=tmp_path / "new", shards=1, threads=1), bundle, recorder
        )


def test_a_shard_that_was_built_again_is_not_taken_over(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    swapped = altered(indexes[1], tmp_path / "swapped", MANIFEST)
    content = json.loads((swapped / MANIFEST).read_text())
    (swapped / MANIFEST).write_text(to_checksummed_json({**content, "m": content["m"] + 1}))
    with pytest.raises(ArtefactError, match="not the shard that was built for the index"):
        build_index(
            BuildPlan(source=swapped, target=tmp_path / "new", shards=1, threads=1),
            bundle,
            recorder,
        )


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
    (directory / SHARD_FILE).write_text(to_checksummed_json(content))
    vouch_for_shards(copy)
    [report] = verify_index(copy, 12, 0.9)
    assert report.faults[0] == "its words do not match the tokens of its passages"


def test_an_index_of_another_encoder_is_refused(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    other = altered(indexes[1], tmp_path / "other", INDEX_FILE, encoding_fingerprint="other")
    with pytest.raises(ArtefactError, match=r"was encoded by bundle .*\(other\)"):
        build_index(
            BuildPlan(source=other, target=tmp_path / "new", shards=1, threads=1), bundle, recorder
        )


def test_damaged_passages_are_not_taken_over(
    bundle: Bundle, indexes: dict[int, Path], tmp_path: Path, recorder: Recorder
) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(indexes[1], damaged)
    store = damaged / shard_name(0, 1) / "passages.sqlite"
    store.write_bytes(store.read_bytes()[:-1] + b"!")
    with pytest.raises(ArtefactError, match="is damaged"):
        build_index(
            BuildPlan(source=damaged, target=tmp_path / "new", shards=1, threads=1),
            bundle,
            recorder,
        )
    assert not (tmp_path / "new").exists()
