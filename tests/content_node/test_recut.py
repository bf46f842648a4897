"""Building an index out of another one."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import PASSAGES, Recorder

from content_node.build.builder import BuildPlan, build_index
from content_node.build.verify import verify_index
from content_node.shard import open_shard
from content_node.shard.manifest import INDEX_FILE, SHARD_FILE, shard_name
from winnow.bundle import Bundle
from winnow.errors import ArtefactError


def stored(index: Path, shards: int) -> dict[str, tuple[bytes, bytes]]:
    """Text tokens and vector of every passage, and whether its shard has words."""
    found = {}
    for shard in range(shards):
        opened = open_shard(index / shard_name(shard, shards), ef=64)
        assert opened.words is not None
        vectors = opened.store.vectors(opened.manifest.dimension)
        for row, name in enumerate(opened.store.ids(range(len(vectors)))):
            tokens = opened.store.load([row])[0].tokens
            found[name] = (repr(tokens).encode(), vectors[row].tobytes())
    return found


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
