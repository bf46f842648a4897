"""Nearest rows by a graph that leads to too few of them, and by comparing chunk by chunk."""

import contextlib
from collections.abc import Iterator

import needs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.content_node.shard import comparing, hnsw, row_scan
from winnow.content_node.shard.memory_segment import MemoryVectors
from winnow.content_node.shard.nearest import (
    READS_PER_NEIGHBOUR,
    ExactIndex,
    GraphIndex,
    Vectors,
    build_graph,
    compute_distances,
    neighbours_to_fetch,
    search_chunks,
)
from winnow.content_node.shard.rows import RowNumbers
from winnow.errors import StoppedError
from winnow.inference.stop_signal import StopSignal

pytest.importorskip("hnswlib", reason=needs.HNSWLIB)
RANDOM = np.random.default_rng(1)
DIFFERENT = RANDOM.standard_normal((600, 16)).astype(np.float32)
EQUAL = np.repeat(DIFFERENT[:1], 600, axis=0)
"""Each row keeps links to a few others that are as near as all: the graph falls apart."""


def in_chunks(vectors: Vectors, size: int = 100) -> list[tuple[RowNumbers, Vectors]]:
    starts = range(0, len(vectors), size)
    return [
        (np.arange(start, min(start + size, len(vectors))), vectors[start : start + size])
        for start in starts
    ]


def graph_of(
    vectors: Vectors,
    ef: int = 16,
    deleted: int = 0,
    reads_per_neighbour: float = READS_PER_NEIGHBOUR,
) -> GraphIndex:
    index = build_graph(vectors, m=4, ef_construction=16, threads=1)
    for row in range(deleted):
        index.mark_deleted(row)
    occupied_rows = np.arange(len(vectors)) >= deleted
    return GraphIndex(
        index,
        ef,
        MemoryVectors(vectors),
        occupied_rows=occupied_rows,
        reads_per_neighbour=reads_per_neighbour,
    )


def test_rows_that_the_graph_does_not_reach_are_found_by_their_vectors() -> None:
    graph = graph_of(EQUAL)
    assert graph.search_graph(EQUAL[0], 500) is None
    assert graph.search(EQUAL[0], 500) == ExactIndex(EQUAL).search(EQUAL[0], 500)


def test_rows_that_the_graph_has_marked_as_deleted_are_never_found() -> None:
    graph = graph_of(DIFFERENT, deleted=590)
    occupied_rows = np.arange(590, 600)
    exact = ExactIndex(DIFFERENT[occupied_rows], occupied_rows).search(DIFFERENT[0], 11)
    assert len(exact) == 10
    assert graph.search(DIFFERENT[0], 11) == exact
    assert graph.search(DIFFERENT[0], 11, np.ones(600, np.bool_)) == exact


def test_a_wider_walk_would_reach_no_more() -> None:
    narrow, wide = graph_of(EQUAL, ef=16), graph_of(EQUAL, ef=600)
    for k in range(1, 600, 7):
        assert (narrow.search_graph(EQUAL[0], k) is None) == (
            wide.search_graph(EQUAL[0], k) is None
        )


def test_more_rows_can_be_asked_for_than_the_search_is_broad() -> None:
    found = graph_of(DIFFERENT, ef=16).search_graph(DIFFERENT[0], 100)
    assert found is not None
    assert len(found) == 100


def test_a_graph_without_rows_finds_none() -> None:
    graph = GraphIndex(build_graph(DIFFERENT[:0], 4, 16, 1), 16, MemoryVectors(DIFFERENT[:0]))
    assert graph.search(DIFFERENT[0], 10) == []


def test_comparing_ends_when_it_is_stopped() -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(StoppedError):
        graph_of(EQUAL).search(EQUAL[0], 500, stop=stop)


LIBRARIES = pytest.mark.parametrize("library", ["hnswlib", "NumPy"])


def nearest_by_hand(vectors: Vectors, k: int, rows: RowNumbers) -> list[tuple[int, float]]:
    distances = compute_distances(MemoryVectors(vectors), vectors[0], rows.tolist()).tolist()
    found = sorted(zip(distances, rows.tolist(), strict=True))
    return [(row, distance) for distance, row in found if distance <= found[:k][-1][0]]


@contextlib.contextmanager
def comparing_by(library: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        if library == "NumPy":
            patched.setattr(hnsw, "module", None)
        yield


@LIBRARIES
@pytest.mark.parametrize("spread", [1.0, 1e-3, 0.0], ids=["far", "near", "equal"])
@pytest.mark.parametrize("step", [1, 2], ids=["range", "gaps"])
def test_a_list_of_rows_is_searched_exactly(library: str, spread: float, step: int) -> None:
    """Also if candidates are as near to each other as NumPy and hnswlib differ."""
    noise = np.random.default_rng(5).standard_normal((900, 384)).astype(np.float32)
    vectors = noise[:1] + np.float32(spread) * noise[::-1]
    vectors[400:440] = vectors[7]
    with comparing_by(library):
        source, rows = MemoryVectors(vectors), np.arange(3, 880, step)
        for k in (1, 10, 100, 600):
            found = row_scan.nearest_of_rows(source, vectors[0], k, rows)
            assert found == nearest_by_hand(vectors, k, rows)
        assert row_scan.nearest_of_rows(source, vectors[0], 0, rows) == []
        assert row_scan.nearest_of_rows(source, vectors[0], 3, rows[:0]) == []


def test_a_search_of_a_list_ends_when_it_is_stopped() -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(StoppedError):
        row_scan.nearest_of_rows(MemoryVectors(EQUAL), EQUAL[0], 5, np.arange(600), stop)


@LIBRARIES
@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=30),
    st.integers(1, 10),
    st.integers(1, 40),
)
def test_chunk_by_chunk_is_the_same_as_all_at_once(
    library: str, rows: list[int], size: int, k: int
) -> None:
    vectors, asked = DIFFERENT[rows], DIFFERENT[5]
    with comparing_by(library):
        found = search_chunks(in_chunks(vectors, size), asked, k)
        assert found == ExactIndex(vectors).search(asked, k)


@given(
    st.lists(st.integers(0, 599), min_size=1, max_size=400, unique=True),
    st.integers(1, 400),
    st.integers(0, 599),
)
def test_both_libraries_find_the_same_rows(rows: list[int], k: int, asked: int) -> None:
    """Their distances differ by no more than the rounding of single precision."""
    vectors, numbers, k = DIFFERENT[rows], np.array(rows), min(k, len(rows))
    by_hnswlib, by_numpy = [
        dict(zip(*table(vectors, numbers).nearest(DIFFERENT[asked], k), strict=True))
        for table in (comparing.HnswlibTable, comparing.NumpyTable)
    ]
    assert by_hnswlib == pytest.approx(by_numpy, rel=1e-5)


BIG = RANDOM.standard_normal((4_000, 16)).astype(np.float32)
GRAPH = build_graph(BIG, m=16, ef_construction=100, threads=1)


@pytest.mark.parametrize("share", [0.999, 0.5, 0.2, 0.05, 0.01, 0.001, 0.0])
@pytest.mark.parametrize("reads_per_neighbour", [0.01, 1.0, 100.0])
def test_recall_is_high_for_any_share_of_allowed_rows(
    share: float, reads_per_neighbour: float
) -> None:
    """Whether the graph is searched, or all allowed rows are compared."""
    graph = GraphIndex(GRAPH, 64, MemoryVectors(BIG), reads_per_neighbour=reads_per_neighbour)
    exact = ExactIndex(BIG)
    found = wanted = 0
    for number in range(40):
        chance = np.random.default_rng(number)
        asked = chance.standard_normal(16).astype(np.float32)
        allowed = chance.random(len(BIG)) < share
        right = exact.search(asked, 10, allowed)
        own = graph.search(asked, 10, allowed)
        assert all(allowed[row] for row, _ in own)
        assert len(own) == len(right) == min(10, int(allowed.sum()))
        found, wanted = found + len(set(own) & set(right)), wanted + len(right)
    assert found >= 0.95 * wanted


@pytest.mark.parametrize("reads_per_neighbour", [0.01, 1.0])
def test_recall_is_high_where_all_allowed_rows_lie_far_away(reads_per_neighbour: float) -> None:
    graph, exact = (
        GraphIndex(GRAPH, 64, MemoryVectors(BIG), reads_per_neighbour=reads_per_neighbour),
        ExactIndex(BIG),
    )
    found = 0
    for asked in DIFFERENT[:20]:
        far = np.linalg.norm(BIG - asked, axis=1)
        allowed = far > np.quantile(far, 0.7)
        right = exact.search(asked, 10, allowed)
        found += len(set(graph.search(asked, 10, allowed)) & set(right))
    assert found >= 0.95 * 200


def test_more_is_fetched_the_fewer_rows_are_allowed_and_the_more_are_wanted() -> None:
    assert neighbours_to_fetch(100, 1_000, 1_000) == 130
    assert neighbours_to_fetch(100, 100, 1_000) == 1_300
    assert neighbours_to_fetch(1, 10, 1_000) == 400
    assert neighbours_to_fetch(1, 0, 1_000) == 4_000


@LIBRARIES
@given(st.lists(st.integers(0, 599), max_size=20, unique=True))
def test_distances_of_rows_are_bit_for_bit_those_that_searching_finds(
    library: str, rows: list[int]
) -> None:
    asked = DIFFERENT[7]
    with comparing_by(library):
        known = dict(ExactIndex(DIFFERENT).search(asked, 600))
        found = compute_distances(MemoryVectors(DIFFERENT), asked, rows)
    assert found.tolist() == [known[row] for row in rows]
