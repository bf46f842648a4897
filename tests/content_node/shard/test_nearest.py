"""Nearest rows by a graph that leads to too few of them, and by comparing chunk by chunk."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_node.shard.nearest import (
    ExactIndex,
    GraphIndex,
    Vectors,
    build_graph,
    search_chunks,
)
from winnow.errors import StoppedError
from winnow.inference.stop import Stop

RANDOM = np.random.default_rng(1)
DIFFERENT = RANDOM.standard_normal((600, 16)).astype(np.float32)
EQUAL = np.repeat(DIFFERENT[:1], 600, axis=0)
"""Each row keeps links to a few others that are as near as all: the graph falls apart."""


def in_chunks(vectors: Vectors) -> list[Vectors]:
    return [vectors[start : start + 100] for start in range(0, len(vectors), 100)]


def graph_of(vectors: Vectors, ef: int = 16, deleted: int = 0) -> GraphIndex:
    index = build_graph(vectors, m=4, ef_construction=16, threads=1)
    for row in range(deleted):
        index.mark_deleted(row)
    return GraphIndex(index, ef, lambda: in_chunks(vectors))


def test_rows_that_the_graph_does_not_reach_are_found_by_their_vectors() -> None:
    graph = graph_of(EQUAL)
    assert graph.walk(EQUAL[0], 500) is None
    assert graph.search(EQUAL[0], 500) == ExactIndex(EQUAL).search(EQUAL[0], 500)


def test_rows_that_the_graph_has_marked_as_deleted_are_found_by_their_vectors() -> None:
    graph = graph_of(DIFFERENT, deleted=590)
    assert graph.walk(DIFFERENT[0], 11) is None
    assert graph.search(DIFFERENT[0], 11) == ExactIndex(DIFFERENT).search(DIFFERENT[0], 11)


def test_a_wider_walk_would_reach_no_more() -> None:
    narrow, wide = graph_of(EQUAL, ef=16), graph_of(EQUAL, ef=600)
    for k in range(1, 600, 7):
        assert (narrow.walk(EQUAL[0], k) is None) == (wide.walk(EQUAL[0], k) is None)


def test_more_rows_can_be_asked_for_than_the_search_is_broad() -> None:
    found = graph_of(DIFFERENT, ef=16).walk(DIFFERENT[0], 100)
    assert found is not None
    assert len(found) == 100


def test_a_graph_without_rows_finds_none() -> None:
    graph = GraphIndex(build_graph(DIFFERENT[:0], 4, 16, 1), 16, list)
    assert graph.search(DIFFERENT[0], 10) == []


def test_comparing_ends_when_nobody_waits() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(StoppedError):
        graph_of(EQUAL).search(EQUAL[0], 500, stop)


@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 3]), min_size=1, max_size=30),
    st.integers(1, 10),
    st.integers(1, 40),
)
def test_chunk_by_chunk_is_the_same_as_all_at_once(rows: list[int], size: int, k: int) -> None:
    vectors = DIFFERENT[rows]
    chunks = [vectors[start : start + size] for start in range(0, len(rows), size)]
    asked = DIFFERENT[5]
    assert search_chunks(chunks, asked, k) == ExactIndex(vectors).search(asked, k)
