"""Opening and verifying shards: every damaged file is refused by name."""

import json
import shutil
from pathlib import Path

import pytest
from damaged_files import flip_bit

from winnow.content_node.indexing.contents import recall_at
from winnow.content_node.indexing.verify import verify_index
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.manifest import SHARD_FILE, read_index_manifest
from winnow.content_node.shard.saving import FILES
from winnow.domain.shard import INDEX_FILE, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.files.opened import OpenFile, sha256


@pytest.fixture
def index(indexes: dict[int, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexes[2], tmp_path / "index"))


@pytest.mark.graph
@pytest.mark.parametrize("name", ["passages.sqlite", "graph.hnsw"])
@pytest.mark.parametrize("share", [0.0, 0.37, 0.9])
def test_a_flipped_byte_anywhere_is_refused_by_name(index: Path, name: str, share: float) -> None:
    path = index / shard_name(1, 2) / name
    flip_bit(path, int(path.stat().st_size * share))
    with pytest.raises(ArtefactError, match=f"{name} is damaged"):
        open_shard(path.parent, ef=64)
    reports = verify_index(index, 10, 0.9)
    assert not reports[0].faults
    assert name in reports[1].faults[0]


@pytest.mark.graph
def test_a_truncated_file_is_refused_by_name(index: Path) -> None:
    path = index / shard_name(0, 2) / "graph.hnsw"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ArtefactError, match=r"graph\.hnsw is damaged, .* it has \d+ bytes"):
        open_shard(path.parent, ef=64)


def test_a_shard_of_another_index_is_a_fault(index: Path, indexes: dict[int, Path]) -> None:
    target = index / shard_name(1, 2)
    shutil.rmtree(target)
    shutil.copytree(indexes[3] / shard_name(1, 3), target)
    faults = verify_index(index, 10, 0.9)[1].faults
    assert any("manifest is of shard 1 of 3" in fault for fault in faults)
    assert any("belongs to index" in fault for fault in faults)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_of_nonsense_whose_checksum_fits_is_a_fault_of_its_shard(
    index: Path, name: str
) -> None:
    directory = index / shard_name(1, 2)
    (directory / name).write_bytes(b"nonsense")
    content = json.loads((directory / SHARD_FILE).read_text())
    content["files"][name] = {"sha256": sha256(directory / name), "bytes": 8}
    (directory / SHARD_FILE).write_text(to_checksummed_json(content))
    first, second = verify_index(index, 10, 0.9)
    assert not first.faults
    assert second.faults


def test_a_swapped_shard_is_named(index: Path, tmp_path: Path) -> None:
    manifest = index / shard_name(1, 2) / SHARD_FILE
    content = json.loads(manifest.read_text())
    manifest.write_text(to_checksummed_json({**content, "ef_construction": 100}))
    assert open_shard(manifest.parent, ef=64).manifest.ef_construction == 100
    first, second = verify_index(index, 10, 0.9)
    assert not first.faults
    assert second.faults == (
        "it is not the shard that was built for the index: copy that shard again",
    )


def test_a_flipped_byte_of_the_index_manifest_is_refused_by_name(index: Path) -> None:
    for place in range((index / INDEX_FILE).stat().st_size):
        flip_bit(index / INDEX_FILE, place)
        with pytest.raises(ArtefactError, match=r"index\.json"):
            read_index_manifest(index)
        flip_bit(index / INDEX_FILE, place)
    assert read_index_manifest(index).shards == 2


def test_an_index_instead_of_a_shard_is_named_and_the_reverse(
    index: Path,
) -> None:
    with pytest.raises(
        ArtefactError, match=r"is an index: name one of its shards, such as .*-00000-of-00002"
    ):
        open_shard(index, ef=64)
    with pytest.raises(ArtefactError, match="is a shard: name the index that it is part of"):
        read_index_manifest(index / shard_name(0, 2))


def test_an_index_manifest_that_does_not_name_every_shard_is_refused(index: Path) -> None:
    content = json.loads((index / INDEX_FILE).read_text())
    (index / INDEX_FILE).write_text(
        to_checksummed_json({**content, "manifests": content["manifests"][:1]})
    )
    with pytest.raises(ArtefactError, match="has checksums of 1 of 2 shards"):
        read_index_manifest(index)


@pytest.mark.graph
@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"store": "../passages.sqlite"}, "not the name of a file in the shard"),
        ({"graph": "other.hnsw"}, "files has no checksum of other.hnsw"),
        ({"format": 6}, "has format 6, this version reads 1 to 4"),
        ({"format": 4}, "format 4 needs vectors, and allows no graph"),
        ({"vectors": "graph.hnsw"}, "format 3 needs graph, and allows no vectors"),
        ({"format": None}, "has format None"),
        ({"passages": -1}, "damaged: passages"),
    ],
)
def test_a_manifest_that_breaks_a_rule_is_refused(
    index: Path, altered: dict[str, object], said: str
) -> None:
    path = index / shard_name(0, 2) / SHARD_FILE
    path.write_text(to_checksummed_json({**json.loads(path.read_text()), **altered}))
    with pytest.raises(ArtefactError, match=said):
        open_shard(path.parent, ef=64)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("../x", {"sha256": "0" * 64, "bytes": 1}),
        ("a/b", {"sha256": "0" * 64, "bytes": 1}),
        ("..", {"sha256": "0" * 64, "bytes": 1}),
        ("x", {"sha256": "0" * 64, "bytes": -1}),
        ("x", {"sha256": "not hex", "bytes": 1}),
    ],
)
def test_a_file_that_a_shard_cannot_have_is_refused(
    index: Path, name: str, entry: dict[str, object]
) -> None:
    path = index / shard_name(0, 2) / SHARD_FILE
    content = json.loads(path.read_text())
    content["files"][name] = entry
    path.write_text(to_checksummed_json(content))
    with pytest.raises(ArtefactError, match=r"manifest\.json is damaged: files"):
        open_shard(path.parent, ef=64)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff", "[" * 100_000, "1" * 5_000])
def test_a_file_that_is_not_a_manifest_is_refused_by_name(index: Path, text: str) -> None:
    path = index / shard_name(0, 2) / SHARD_FILE
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ArtefactError, match=r"manifest\.json is damaged"):
        open_shard(path.parent, ef=64)


def test_a_directory_that_is_not_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="an index"):
        verify_index(tmp_path, 10, 0.9)
    with pytest.raises(ArtefactError, match="a shard of an index"):
        open_shard(tmp_path, ef=64)


@pytest.mark.graph
def test_graph_and_exact_search_agree_to_the_bit(indexes: dict[int, Path]) -> None:
    from winnow.content_node.shard.nearest import ExactIndex, load_graph

    directory = indexes[1] / shard_name(0, 1)
    opened = open_shard(directory, ef=64)
    vectors = opened.store.vectors(opened.manifest.dimension)
    exact = ExactIndex(vectors)
    file = OpenFile(directory / "graph.hnsw")
    graph = load_graph(file, vectors.shape[1], len(vectors), 64, opened.vectors)
    for vector in vectors:
        assert graph.search(vector, 50) == exact.search(vector, 50)


def test_recall_is_the_share_of_exact_results_found() -> None:
    near, far = [(1, 0.5), (2, 0.6)], [(3, 0.5), (9, 0.8)]
    assert recall_at([near, far], [near, [(3, 0.5), (4, 0.7)]]) == 0.75
    assert recall_at([[], near[:1]], [near, near]) == 0.25
    assert recall_at([], []) == 1.0


def test_results_as_near_as_the_exact_ones_are_as_good() -> None:
    """Of many equal passages any may be found."""
    assert recall_at([[(7, 0.5), (8, 0.5)]], [[(1, 0.5), (2, 0.5)]]) == 1.0
