"""A view of segments on disk and in memory, some of whose rows are gone, finds what comparing every
passage finds.
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shards_made
from hypothesis import given, settings
from hypothesis import strategies as st
from shards_made import in_memory, passages, question, stored
from unpacked import title_ids, tokens, with_text_of

from winnow.content_node.shard import ShardView, StoredSegment, view_of
from winnow.content_node.shard.retrieving import Candidates, retrieve
from winnow.content_node.shard.view import PlacedSegment, live_generation
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.write import EncodedPassage
from winnow.errors import ArtefactError, GenerationGoneError, InvalidRequestError, StoppedError
from winnow.inference.stop_signal import StopSignal
from winnow.passages.encoding import pack_ids
from winnow.searcher import Retrieved
from winnow.stateless.answer.choose import best_overall

WEIGHT = 0.05
ALL = passages(60)
DEPTHS = [
    RetrievalDepth(passages=4),
    RetrievalDepth(passages=4, candidates=10),
    RetrievalDepth(passages=4, candidates=10, by_words=6),
    RetrievalDepth(passages=4, candidates=1, by_words=9),
    RetrievalDepth(passages=4, by_words=7),
    RetrievalDepth(passages=40, candidates=50, by_words=50),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> StoredSegment:
    """The first 20 passages, of which rows 3 and 7 hold nothing any more; words of all counted."""
    directory = tmp_path_factory.mktemp("base") / "shard"
    return stored(directory, ALL[:20], ALL, holes=(3, 7))


def live(base: StoredSegment, cuts: list[int], dead: set[int]) -> ShardView:
    """Rows 20 to 59 as puts 1 to 40, in segments that end at the cuts."""
    ends = sorted({20, *(20 + cut for cut in cuts), 60})
    alive = np.array([row not in dead for row in range(60)])
    placed = [PlacedSegment(base, 0, alive[:20])]
    for first, end in itertools.pairwise(ends):
        segment = in_memory(ALL[first:end], first - 19)
        placed.append(PlacedSegment(segment, first, alive[first:end]))
    gone = dead | {3, 7}
    return replace(
        view_of(base),
        generation="g",
        segments=tuple(placed),
        passages=60 - len(gone),
        sequence=40,
        log_id="log",
    )


def by_hand(
    view: ShardView, asked: EncodedQuestion, depth: RetrievalDepth, rows: list[int]
) -> list[Hit]:
    """The best of all candidates, every passage being compared."""
    segment = in_memory(ALL, 0)
    terms = view.built_rarities.terms(asked)
    distances = segment.distances(asked.vector, rows)
    matches = segment.bm25_scores(terms, rows)
    words = matches.astype(np.float32)
    nearest = np.argsort(distances, kind="stable")[: depth.nearest_candidates]
    having = np.sort(words[words > 0])[::-1][: depth.word_candidates]
    least = having[-1] if len(having) else np.inf
    chosen = set(nearest.tolist()) | set(np.flatnonzero(words >= least).tolist())
    order = distances
    if depth.is_by_words_only:
        order = (-WEIGHT * matches).astype(np.float32)
    elif depth.candidates:
        order = (distances - WEIGHT * matches).astype(np.float32)
    hits = [
        Hit(
            row=rows[each],
            passage_id=ALL[rows[each]].passage.id,
            distance=float(distances[each]),
            hybrid_distance=float(order[each]),
            generation="g",
            words=float(words[each]),
            sequence=max(rows[each] - 19, 0),
        )
        for each in chosen
    ]
    return sorted(hits, key=lambda hit: (hit.hybrid_distance, hit.passage_id))[: depth.passages]


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 39), max_size=5),
    st.sets(st.integers(0, 59), max_size=58),
    st.integers(0, 10**6),
    st.sampled_from(DEPTHS),
)
def test_a_view_finds_what_comparing_every_passage_finds(
    base: StoredSegment, cuts: list[int], dead: set[int], seed: int, depth: RetrievalDepth
) -> None:
    view, asked = live(base, cuts, dead), question(seed)
    rows = [row for row in range(60) if row not in dead | {3, 7}]
    found = retrieve(view, asked, depth, WEIGHT)
    assert list(found.hits[: depth.passages]) == by_hand(view, asked, depth, rows)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[ShardView]]:
    """The same passages in 1, 2, 3 and 8 shards."""
    root = tmp_path_factory.mktemp("shards")
    return {
        count: [
            view_of(stored(root / f"{count}-{number}", ALL[number::count], ALL))
            for number in range(count)
        ]
        for count in (1, 2, 3, 8)
    }


def chosen(
    views: list[ShardView], asked: EncodedQuestion, depth: RetrievalDepth
) -> list[tuple[object, ...]]:
    found = {n: _as_told(retrieve(view, asked, depth, WEIGHT)) for n, view in enumerate(views)}
    return [
        (hit.passage_id, hit.distance, hit.hybrid_distance, hit.words)
        for _, hit in best_overall(found, depth)
    ]


def _as_told(found: Candidates) -> Retrieved:
    return Retrieved(
        found.hits, found.distances, ShardTimings(), idle_readers=0, candidate_words=found.words
    )


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(DEPTHS), st.booleans())
def test_what_is_chosen_does_not_depend_on_how_the_index_is_cut(
    shards: dict[int, list[ShardView]], seed: int, depth: RetrievalDepth, weighed: bool
) -> None:
    asked = question(seed)
    if weighed:
        rarities = np.random.default_rng(seed).random(len(asked.token_ids)) * 5
        asked = replace(asked, rarities=tuple(rarities.tolist()), mean_length=5.0)
    alone = chosen(shards[1], asked, depth)
    assert len(alone) == depth.passages or depth.is_by_words_only
    for count in (2, 3, 8):
        assert chosen(shards[count], asked, depth) == alone


@pytest.mark.parametrize(
    "depth",
    [
        RetrievalDepth(passages=3),
        RetrievalDepth(passages=2, candidates=3),
        RetrievalDepth(passages=3, by_words=3),
    ],
)
def test_equal_texts_are_chosen_by_id_in_any_segment(tmp_path: Path, depth: RetrievalDepth) -> None:
    same = [replace(ALL[0], passage=each.passage) for each in ALL[:30]]
    for count in (1, 3):
        views = [
            view_of(stored(tmp_path / f"{count}-{n}", same[::-1][n::count], same))
            for n in range(count)
        ]
        found = [name for name, *_ in chosen(views, question(2), depth)]
        assert found == ["p0", "p1", "p10"][: depth.passages]


def test_passages_of_equal_words_are_chosen_by_their_names_wherever_they_lie(
    tmp_path: Path,
) -> None:
    """The best by words of a shard may be any of many that are as good."""
    same = [replace(with_text_of(each, ALL[0]), title_tokens=pack_ids((1,))) for each in ALL[:12]]
    asked = replace(question(1), token_ids=(1,))
    for count in (1, 3):
        views = [
            view_of(stored(tmp_path / f"{count}-{n}", same[::-1][n::count], same))
            for n in range(count)
        ]
        found = [name for name, *_ in chosen(views, asked, RetrievalDepth(passages=3, by_words=3))]
        assert found == ["p0", "p1", "p10"]


def test_a_passage_is_read_also_after_it_was_deleted(base: StoredSegment) -> None:
    view = live(base, [5, 20], dead={2, 30})
    assert view.load(2).passage == ALL[2].passage
    assert view.load(30).passage == ALL[30].passage
    assert view.load(30).tokens == tokens(ALL[30])
    assert view.load(30).title_ids == title_ids(ALL[30])
    for row in (3, 60, -1):
        with pytest.raises(GenerationGoneError, match="retrieve again"):
            view.load(row)


def test_a_passage_is_found_again_by_its_name_and_write(base: StoredSegment) -> None:
    view = live(base, [5, 20], dead={2, 30})
    for row, write in ((2, 0), (20, 1), (30, 11), (59, 40)):
        assert view.find_row(ALL[row].passage.id, write) == row
        assert view.find_row(ALL[row].passage.id, write + 1) is None
    assert view.find_row("p3", 0) is None


def test_the_same_passage_put_twice_is_two_rows(base: StoredSegment) -> None:
    segment = in_memory([ALL[1], ALL[1]], 7)
    assert [segment.find_row("p1", write) for write in (6, 7, 8)] == [None, 0, 1]


def test_segments_in_memory_can_be_made_one() -> None:
    parts = [in_memory(ALL[first : first + 7], first) for first in range(0, 21, 7)]
    whole, joined = in_memory(ALL[:21], 0), parts[0].joined(*parts[1:])
    asked = question(5)
    assert joined.rows == 21
    assert joined.nearest(asked.vector, 9) == whole.nearest(asked.vector, 9)
    assert joined.ids_and_sequences(range(21)) == whole.ids_and_sequences(range(21))


def test_a_stopped_question_is_not_filtered(base: StoredSegment) -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(StoppedError):
        retrieve(
            live(base, [5], set()),
            question(3),
            RetrievalDepth(passages=4, where="n > 1"),
            WEIGHT,
            stop,
        )
    assert retrieve(
        view_of(base), question(3), RetrievalDepth(passages=4, where="not n > 1"), WEIGHT
    ).hits


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_filter_narrows_every_way_of_finding(depth: RetrievalDepth, tmp_path: Path) -> None:
    def labelled(number: int, each: EncodedPassage) -> EncodedPassage:
        metadata = json.dumps({"number": number})
        return replace(each, passage=replace(each.passage, metadata=metadata))

    own = [labelled(number, each) for number, each in enumerate(ALL)]
    segment = in_memory(own)
    base = stored(tmp_path / "shard", [], ALL)
    alive = np.arange(60) % 7 > 0
    view = replace(
        view_of(base), segments=(PlacedSegment(segment, 0, alive),), passages=51, sequence=60
    )
    asked = question(3)
    narrowed = replace(depth, where="number >= 10 and number < 30")
    rows = [row for row in range(10, 30) if row % 7]
    found = retrieve(view, asked, narrowed, WEIGHT).hits[: depth.passages]
    expected = by_hand(view, asked, depth, rows)
    assert [hit.passage_id for hit in found] == [hit.passage_id for hit in expected]
    assert retrieve(view, asked, replace(depth, where="other = 1"), WEIGHT).hits == ()
    with pytest.raises(InvalidRequestError):
        retrieve(view, asked, replace(depth, where="number >"), WEIGHT)


def test_the_name_of_a_live_generation_tells_base_and_log() -> None:
    names = {live_generation("a", "x"), live_generation("a", "y"), live_generation("b", "x")}
    assert len(names) == 3
    assert all(len(name) == 16 for name in names)


def test_a_shard_with_holes_is_searched_by_its_graph(tmp_path: Path) -> None:
    own = passages(300, seed=4)
    holes = set(range(0, 300, 5))
    shard = stored(tmp_path / "shard", own, holes=holes, exact_up_to=0)
    exact = stored(tmp_path / "same", own, holes=holes)
    asked = question(9)
    assert (shard.rows, shard.manifest.passages) == (300, 240)
    for k in (1, 10, 300):
        found = shard.nearest(asked.vector, k)
        assert found == exact.nearest(asked.vector, k)
        assert not holes & {row for row, _ in found}
    assert shard.ids_and_sequences([299, 1]) == [("p299", 0), ("p1", 0)]
    with pytest.raises(ArtefactError, match="has no row 5"):
        shard.ids_and_sequences([4, 5])
    words = shard.built_rarities.terms(asked)
    assert not holes & {row for row, _ in shard.best_by_words(words, 300)[0]}
    assert shard.bm25_scores(words, sorted(holes)).tolist() == [0.0] * len(holes)
    assert shards_made.passages(300, seed=4)[1].passage == shard.load(1).passage
