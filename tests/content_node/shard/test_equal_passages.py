"""Of many equal passages those with the first ids are chosen, and no others are looked at."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shards_made import in_memory, passages, question, stored
from unpacked import vector, with_text_of

from winnow.content_node.shard import ShardView, StoredSegment, view_of
from winnow.content_node.shard import equal_passages as module
from winnow.content_node.shard.equal_passages import EqualPassages, group_equal, hash_vectors
from winnow.content_node.shard.memory_segment import MemoryVectors
from winnow.content_node.shard.nearest import GraphIndex, build_graph
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.row_names import RowNames
from winnow.content_node.shard.view import PlacedSegment
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.searcher import Retrieved
from winnow.stateless.answer.choose import best_overall

WEIGHT = 0.05
_TEXTS = passages(8)
SAME_VECTOR = with_text_of(_TEXTS[1], _TEXTS[2])
"""As where an encoder cuts two long passages at the same place."""
_KINDS = [*[_TEXTS[0]] * 5, *[_TEXTS[1]] * 3, SAME_VECTOR, *_TEXTS[2:]]
ALL = [
    replace(
        _KINDS[(n * 7) % len(_KINDS)], passage=replace(_TEXTS[0].passage, id=f"p{n * 37 % 101}")
    )
    for n in range(100)
]
DEPTHS = [
    RetrievalDepth(passages=4),
    RetrievalDepth(passages=4, candidates=10),
    RetrievalDepth(passages=3, candidates=3, by_words=9),
    RetrievalDepth(passages=6, candidates=8, by_words=2),
    RetrievalDepth(passages=4, by_words=7),
]


def cut(root: Path, exact_up_to: int) -> dict[int, list[StoredSegment]]:
    """The same passages in 1, 2, 3 and 8 shards."""
    return {
        count: [
            stored(root / f"{count}-{n}", ALL[n::count], ALL, exact_up_to=exact_up_to)
            for n in range(count)
        ]
        for count in (1, 2, 3, 8)
    }


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> ShardView:
    """One shard that compares with every passage and keeps all that are equal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_UNGROUPED", 10**6)
        segment = stored(tmp_path_factory.mktemp("plain") / "shard", ALL, ALL)
    assert not segment.equal_passages
    return view_of(segment)


@pytest.fixture(scope="module", params=["graph", "exact"])
def shards(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, list[StoredSegment]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_UNGROUPED", 2)
        found = cut(tmp_path_factory.mktemp("cut"), 0 if request.param == "graph" else 2_000)
    assert all(segment.equal_passages for segment in (*found[1], *found[2]))
    return found


def chosen(
    views: Sequence[ShardView], asked: EncodedQuestion, depth: RetrievalDepth
) -> list[tuple[object, ...]]:
    found = {}
    for number, view in enumerate(views):
        own = retrieve(view, asked, depth, WEIGHT)
        found[number] = Retrieved(
            own.hits, own.distances, ShardTimings(), idle_readers=0, candidate_words=own.words
        )
    return [
        (hit.passage_id, hit.distance, hit.hybrid_distance, hit.words)
        for _, hit in best_overall(found, depth)
    ]


def near(seed: int, at: int) -> EncodedQuestion:
    """A question at a passage, so that all that equal it are the nearest, or anywhere."""
    asked = question(seed)
    return asked if at >= len(ALL) else replace(asked, vector=vector(ALL[at]))


asked = st.builds(near, st.integers(0, 10**6), st.integers(0, 150))


@settings(max_examples=60)
@given(asked, st.sampled_from(DEPTHS))
def test_with_ties_the_same_is_chosen_however_the_index_is_cut(
    plain: ShardView,
    shards: dict[int, list[StoredSegment]],
    asked: EncodedQuestion,
    depth: RetrievalDepth,
) -> None:
    expected = chosen([plain], asked, depth)
    for own in shards.values():
        assert chosen(list(map(view_of, own)), asked, depth) == expected


def live(base: StoredSegment, alive: np.ndarray, many: int) -> ShardView:
    """The first half of the passages on disk and the others in memory, some of them dead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_UNGROUPED", many)
        written = in_memory(ALL[50:])
    placed = (PlacedSegment(base, 0, alive[:50]), PlacedSegment(written, 50, alive[50:]))
    passages = int(alive.sum())
    return replace(view_of(base), segments=placed, passages=passages, sequence=50, log_id="log")


@settings(max_examples=30)
@given(asked, st.sampled_from(DEPTHS), st.sets(st.integers(0, 99), max_size=90))
def test_dead_equal_passages_take_no_place(
    halves: tuple[StoredSegment, StoredSegment],
    asked: EncodedQuestion,
    depth: RetrievalDepth,
    dead: set[int],
) -> None:
    thinned, plain = halves
    alive = np.array([row not in dead for row in range(100)])
    expected = chosen([live(plain, alive, 10**6)], asked, depth)
    assert chosen([live(thinned, alive, 2)], asked, depth) == expected


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredSegment, StoredSegment]:
    root = tmp_path_factory.mktemp("halves")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_UNGROUPED", 2)
        thinned = stored(root / "thinned", ALL[:50], ALL, exact_up_to=0)
        patch.setattr(module, "MAX_UNGROUPED", 10**6)
        return thinned, stored(root / "plain", ALL[:50], ALL)


@pytest.mark.parametrize(
    "depth",
    [
        RetrievalDepth(passages=5),
        RetrievalDepth(passages=5, candidates=20),
        RetrievalDepth(passages=5, candidates=20, by_words=20),
        RetrievalDepth(passages=5, by_words=9),
    ],
)
def test_few_of_many_equal_passages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: RetrievalDepth
) -> None:
    named: list[int] = []
    names = RowNames.ids_and_sequences

    def counted(self: RowNames, rows: Sequence[int]) -> list[tuple[str, int]]:
        named.extend(rows)
        return names(self, rows)

    same = [replace(_TEXTS[0], passage=each.passage) for each in passages(3_000)]
    view = view_of(stored(tmp_path / "shard", same))
    monkeypatch.setattr(RowNames, "ids_and_sequences", counted)
    hits = retrieve(view, near(1, 0), depth, WEIGHT).hits
    assert [hit.passage_id for hit in hits][:3] == ["p0", "p1", "p10"]
    assert len(named) <= 50


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_rows_with_the_vector_of_many_equal_passages_and_other_tokens_are_found(
    tmp_path: Path, seed: int
) -> None:
    texts = passages(402)
    many = [
        replace(texts[0], passage=replace(texts[0].passage, id=f"z{number}"))
        for number in range(200)
    ]
    few = [
        replace(with_text_of(texts[0], texts[1]), passage=replace(texts[0].passage, id=f"a{n:02}"))
        for n in range(5)
    ]
    own = [*many, *few, *texts[2:]]
    np.random.default_rng(seed).shuffle(own)
    view = view_of(stored(tmp_path / "shard", own, exact_up_to=0))
    asked = replace(question(1), vector=vector(texts[0]))
    hits = retrieve(view, asked, RetrievalDepth(passages=4), WEIGHT).hits
    assert [hit.passage_id for hit in hits][:4] == ["a00", "a01", "a02", "a03"]


@pytest.mark.graph
@pytest.mark.parametrize("reads_per_neighbour", [0.0, 1e9])
def test_a_row_leads_to_its_whole_group_by_graph_and_by_comparing(
    reads_per_neighbour: float,
) -> None:
    vectors = np.random.default_rng(3).standard_normal((60, 6)).astype(np.float32)
    vectors[10:50] = vectors[10]
    equal = EqualPassages([np.arange(49, 9, -1)], rows=60)
    source = MemoryVectors(vectors)
    graph = GraphIndex(
        build_graph(vectors, 8, 50, 1),
        16,
        source,
        reads_per_neighbour=reads_per_neighbour,
        equal=equal,
    )
    thinned = equal.limit_groups(None, 7)
    found = graph.nearest(vectors[10], 3, thinned)
    assert found == [(row, 0.0) for row in range(43, 50)]


def test_rows_with_equal_vectors_are_found_by_their_bits() -> None:
    vectors = np.random.default_rng(0).standard_normal((100, 7)).astype(np.float32)
    vectors[::2] = vectors[4]
    assert [group.tolist() for group in group_equal(hash_vectors(vectors))] == [
        list(range(0, 100, 2))
    ]


def test_thinning_does_not_change_the_mask_that_it_is_given() -> None:
    equal = EqualPassages([np.array([5, 1, 3, 0])], rows=6)
    allowed = np.array([True, False, True, True, True, True])
    thinned = equal.limit_groups(allowed, 2)
    assert thinned is not None
    assert thinned.tolist() == [False, False, True, True, True, True]
    assert allowed.tolist() == [True, False, True, True, True, True]
    assert equal.limit_groups(allowed, 4) is allowed
