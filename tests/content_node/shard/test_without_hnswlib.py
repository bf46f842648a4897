"""Small shards work without hnswlib, and large ones say what to install."""

from pathlib import Path

import pytest
from damaged_files import flip_bit
from shards_made import make, passages, question, stored

from winnow.content_node.merging.repair import repair
from winnow.content_node.shard import StoredSegment, hnsw, open_shard, view_of
from winnow.content_node.shard.nearest import GraphIndex
from winnow.content_node.shard.retrieving import retrieve
from winnow.domain.question import RetrievalDepth
from winnow.errors import ArtefactError

PASSAGES = passages(60)


@pytest.fixture
def with_graph(tmp_path: Path) -> Path:
    """A shard that was written where hnswlib is installed."""
    make(tmp_path / "with graph", PASSAGES)
    return tmp_path / "with graph"


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch, with_graph: Path) -> None:
    """Makes hnswlib be missing, once there is a shard with a graph."""
    monkeypatch.setattr(hnsw, "module", None)


def ids(segment: StoredSegment) -> list[str]:
    hits = retrieve(view_of(segment), question(3), RetrievalDepth(passages=20), 0.0).hits
    return [hit.passage_id for hit in hits]


def test_a_small_shard_with_a_graph_is_searched_exactly(
    with_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ids(open_shard(with_graph, ef=64))
    monkeypatch.setattr(hnsw, "module", None)
    assert ids(open_shard(with_graph, ef=64, exact_up_to=0)) == expected


@pytest.mark.graph
@pytest.mark.usefixtures("missing")
def test_a_large_shard_with_a_graph_says_what_to_install(
    with_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 59)
    said = r"has 60 passages.* hnswlib, which is not installed: pip install 'winnow-qa\[graph\]'"
    with pytest.raises(ArtefactError, match=said):
        open_shard(with_graph, ef=64, exact_up_to=0)
    assert len(ids(open_shard(with_graph, ef=64, exact=True))) == 20


@pytest.mark.usefixtures("missing")
def test_a_large_shard_without_a_graph_is_served(
    tmp_path: Path, with_graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes may make a shard larger than a build would."""
    monkeypatch.setattr(hnsw, "GRAPHLESS_UP_TO", 59)
    segment = stored(tmp_path / "without", PASSAGES, exact_up_to=0)
    assert ids(segment) == ids(open_shard(with_graph, ef=64, exact=True))


@pytest.mark.usefixtures("missing")
def test_a_flipped_bit_of_the_vectors_is_refused_by_name_and_repaired(tmp_path: Path) -> None:
    shard = tmp_path / "shard"
    expected = ids(stored(shard, PASSAGES, holes=(3, 7)))
    flip_bit(shard / "vectors.npy", 999)
    with pytest.raises(ArtefactError, match=r"vectors\.npy is damaged"):
        open_shard(shard, ef=64)
    assert repair(shard, []) == ["vectors.npy"]
    assert ids(open_shard(shard, ef=64)) == expected


def test_vectors_of_another_shape_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hnsw, "module", None)
    with pytest.raises(ArtefactError, match="does not hold 61 vectors of 8 values"):
        stored(tmp_path / "shard", PASSAGES, rows=61)


@pytest.mark.graph
@pytest.mark.usefixtures("missing")
def test_a_damaged_graph_cannot_be_repaired(with_graph: Path) -> None:
    flip_bit(with_graph / "graph.hnsw", 999)
    with pytest.raises(ArtefactError, match="a graph needs hnswlib, which is not installed"):
        repair(with_graph, [])


@pytest.mark.graph
def test_a_small_graph_is_searched_where_hnswlib_is_installed(with_graph: Path) -> None:
    assert isinstance(open_shard(with_graph, ef=64, exact_up_to=0).index, GraphIndex)
