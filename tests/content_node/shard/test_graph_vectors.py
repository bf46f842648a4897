"""The vectors that lie in the file of a graph."""

from pathlib import Path

import needs
import numpy as np
import pytest

from winnow.content_node.shard.graph_vectors import GraphVectors
from winnow.content_node.shard.nearest import build_graph
from winnow.content_node.shard.rows import RowNumbers
from winnow.content_node.shard.saving import save_graph
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

hnswlib = pytest.importorskip("hnswlib", reason=needs.HNSWLIB)
VECTORS = np.random.default_rng(3).standard_normal((50, 6)).astype(np.float32)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    save_graph(build_graph(VECTORS, 4, 16, 1), tmp_path / "g")
    return tmp_path / "g"


def test_vectors_are_bit_for_bit_those_that_the_graph_was_built_from(graph: Path) -> None:
    vectors = GraphVectors(OpenFile(graph), 6, 50)
    rows = np.array([49, 0, 7, 7])
    assert vectors.read(rows).tolist() == VECTORS[rows].tolist()
    assert vectors.read(rows[:0]).shape == (0, 6)
    ((own, found),) = vectors.chunks(np.arange(50))
    assert (own.tolist(), found.tolist()) == (list(range(50)), VECTORS.tolist())


@pytest.mark.parametrize(
    "rows",
    [
        np.arange(10, 40),
        np.delete(np.arange(50), [5, 20, 21]),
        np.arange(0, 4_000, 2),
        np.concatenate([np.arange(100, 200), np.arange(3_900, 4_000), np.arange(50)]),
        np.arange(0, 4_000, 997),
        np.arange(40)[::-1],
        np.zeros(5, np.int64),
    ],
    ids=["range", "gaps", "every second", "ranges", "far apart", "backwards", "one row"],
)
def test_rows_near_each_other_are_read_at_once(tmp_path: Path, rows: RowNumbers) -> None:
    many = np.random.default_rng(4).standard_normal((4_000, 6)).astype(np.float32)
    save_graph(build_graph(many, 4, 16, 1), tmp_path / "many")
    found = GraphVectors(OpenFile(tmp_path / "many"), 6, 4_000).read(rows)
    assert found.tolist() == many[rows].tolist()


def test_rows_are_found_in_any_order_of_adding(tmp_path: Path) -> None:
    index = hnswlib.Index(space="l2", dim=6)
    index.init_index(max_elements=60, M=4)
    order = np.random.default_rng(1).permutation(50)
    index.add_items(VECTORS[order], order)
    save_graph(index, tmp_path / "g")
    found = GraphVectors(OpenFile(tmp_path / "g"), 6, 50).read(np.arange(50))
    assert found.tolist() == VECTORS.tolist()


@pytest.mark.parametrize(
    ("dimension", "rows", "said"),
    [(6, 49, "holds 50 vectors, expected 49"), (5, 50, "not hold vectors of 5 values")],
)
def test_another_graph_is_refused(graph: Path, dimension: int, rows: int, said: str) -> None:
    with pytest.raises(ArtefactError, match=said):
        GraphVectors(OpenFile(graph), dimension, rows)


def test_labels_beyond_the_rows_are_refused(tmp_path: Path) -> None:
    index = hnswlib.Index(space="l2", dim=6)
    index.init_index(max_elements=2, M=4)
    index.add_items(VECTORS[:2], [0, 2])
    save_graph(index, tmp_path / "g")
    with pytest.raises(ArtefactError, match="a vector of row 2, the shard has 2 rows"):
        GraphVectors(OpenFile(tmp_path / "g"), 6, 2)


def test_a_file_that_is_written_to_is_refused(graph: Path) -> None:
    vectors = GraphVectors(OpenFile(graph), 6, 50)
    graph.write_bytes(graph.read_bytes() + b" ")
    with pytest.raises(ArtefactError, match="was written to"):
        vectors.read(np.arange(3))
    graph.write_bytes(b"x")
    with pytest.raises(ArtefactError, match="holds no graph"):
        GraphVectors(OpenFile(graph), 6, 50)
