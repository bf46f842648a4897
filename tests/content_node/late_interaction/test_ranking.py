"""Late interaction ranks the candidates of a shard alike, however the index is cut and whether the
token vectors are stored or computed.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_token_vectors import (
    FINGERPRINT,
    FakePassageTokens,
    OpenModel,
    question_tokens,
    ranking,
    write_token_vectors,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from manual_clock import ManualClock
from shards_made import in_memory, make, passages, question
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.candidates.joint import without_outranked
from winnow.candidates.limits import candidate_limits
from winnow.content_node.late_interaction.background import BackgroundTokens
from winnow.content_node.late_interaction.computed_tokens import ComputedTokens
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.scoring import LateRanking, LateScorer
from winnow.content_node.shard import ShardView, open_shard, view_of
from winnow.content_node.shard.nearest import GraphIndex
from winnow.content_node.shard.retrieving import (
    Candidates,
    find_candidates,
    rank_candidates,
    retrieve,
)
from winnow.content_node.shard.view import PlacedSegment
from winnow.domain.answered import ShardTimings
from winnow.domain.question import EncodedQuestion, QuestionTokens, RetrievalDepth
from winnow.domain.shard import DEFAULT_EF
from winnow.domain.write import EncodedPassage
from winnow.reading.states_kind import TOKEN_VECTORS
from winnow.searcher import Retrieved
from winnow.stateless.answer.choose import best_overall

ALL = passages(60)
DEPTHS = [
    RetrievalDepth(passages=4, candidates=10, by_words=6),
    RetrievalDepth(passages=4, candidates=1, by_words=9),
    RetrievalDepth(passages=2, candidates=30),
    RetrievalDepth(passages=40, candidates=50, by_words=50),
]


def opened(directory: Path, own: list[EncodedPassage], *, with_vectors: bool = True) -> ShardView:
    make(directory, own, ALL)
    if with_vectors:
        write_token_vectors(directory)
    return view_of(open_shard(directory, 64, token_vectors_fingerprint=FINGERPRINT))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[ShardView]]:
    """The same passages in 1, 3 and 7 shards."""
    root = tmp_path_factory.mktemp("shards")
    return {
        count: [opened(root / f"{count}-{n}", ALL[n::count]) for n in range(count)]
        for count in (1, 3, 7)
    }


def asked_with_tokens(seed: int) -> EncodedQuestion:
    asked = question(seed)
    return replace(asked, tokens=question_tokens(asked.token_ids))


def retrieved(view: ShardView, asked: EncodedQuestion, depth: RetrievalDepth) -> Retrieved:
    return as_retrieved(retrieve(view, asked, depth, 0.05, None, ranking()))


def retrieved_together(
    views: list[ShardView], asked: EncodedQuestion, depth: RetrievalDepth, late: LateRanking
) -> list[Retrieved]:
    """Retrieves from several shards as a node does for one call."""
    found = [find_candidates(view, asked, depth) for view in views]
    limits = candidate_limits(found, depth)
    return [as_retrieved(rank_candidates(each, limits, 0.05, None, late)) for each in found]


def as_retrieved(found: Candidates) -> Retrieved:
    return Retrieved(
        found.hits,
        found.distances,
        ShardTimings(),
        candidate_words=found.words,
        late_interaction=found.late_interaction,
    )


def chosen(results: list[Retrieved], depth: RetrievalDepth) -> list[tuple[object, ...]]:
    return [
        (hit.passage_id, hit.distance, hit.hybrid_distance, hit.words)
        for _, hit in best_overall(dict(enumerate(results)), depth)
    ]


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.sampled_from(DEPTHS))
def test_the_choice_does_not_depend_on_how_the_index_is_cut(
    shards: dict[int, list[ShardView]], seed: int, depth: RetrievalDepth
) -> None:
    asked = asked_with_tokens(seed)
    alone = chosen([retrieved(shards[1][0], asked, depth)], depth)
    assert len(alone) == depth.passages
    for count in (3, 7):
        results = [retrieved(view, asked, depth) for view in shards[count]]
        assert all(each.late_interaction for each in results)
        assert chosen(results, depth) == alone
        assert chosen(without_outranked(results, depth), depth) == alone
        together = retrieved_together(shards[count], asked, depth, ranking())
        assert chosen(together, depth) == alone
        assert without_outranked(together, depth) == without_outranked(results, depth)


def test_shards_that_are_called_together_score_the_candidates_of_all_of_them(
    shards: dict[int, list[ShardView]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work must not grow with the number of shards."""
    scored: list[int] = []
    late, depth = ranking(), RetrievalDepth(passages=4, candidates=10)
    score = late.scorer.scores

    def count(view: ShardView, tokens: QuestionTokens, rows: Sequence[int], *rest: Any) -> Any:
        scored.append(len(rows))
        return score(view, tokens, rows, *rest)

    monkeypatch.setattr(late.scorer, "scores", count)
    for each in (shards[1], shards[7]):
        retrieved_together(each, asked_with_tokens(1), depth, late)
    assert scored[0] == sum(scored[1:]) == 10


@settings(max_examples=30)
@given(st.lists(st.integers(21, 59), max_size=3), st.integers(0, 10**6), st.sampled_from(DEPTHS))
def test_live_passages_rank_as_merged_ones(
    shards: dict[int, list[ShardView]],
    base: ShardView,
    cuts: list[int],
    seed: int,
    depth: RetrievalDepth,
) -> None:
    ends = sorted({20, *cuts, 60})
    live = [
        PlacedSegment(in_memory(ALL[first:end], first - 19), first)
        for first, end in itertools.pairwise(ends)
    ]
    view = replace(base, segments=(*base.segments, *live), passages=60, sequence=40)
    asked = asked_with_tokens(seed)
    merged = chosen([retrieved(shards[1][0], asked, depth)], depth)
    assert chosen([retrieved(view, asked, depth)], depth) == merged


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> ShardView:
    """The first 20 passages."""
    return opened(tmp_path_factory.mktemp("base") / "shard", ALL[:20])


def test_late_interaction_changes_the_order(shards: dict[int, list[ShardView]]) -> None:
    depth, (view,) = DEPTHS[0], shards[1]
    differing = 0
    for seed in range(20):
        asked = asked_with_tokens(seed)
        late = chosen([retrieved(view, asked, depth)], depth)
        plain = chosen([retrieved(view, replace(asked, tokens=None), depth)], depth)
        differing += [name for name, *_ in late] != [name for name, *_ in plain]
    assert differing > 10


@pytest.mark.parametrize(
    "depth", [RetrievalDepth(passages=4), RetrievalDepth(passages=4, by_words=6)]
)
def test_only_hybrid_retrieval_uses_late_interaction(
    base: ShardView, depth: RetrievalDepth
) -> None:
    asked = asked_with_tokens(1)
    with_tokens, without = (
        retrieved(base, each, depth) for each in (asked, replace(asked, tokens=None))
    )
    assert not with_tokens.late_interaction
    assert with_tokens == without


def test_a_shard_without_token_vectors_ranks_by_distance_and_words(tmp_path: Path) -> None:
    view = opened(tmp_path / "shard", ALL, with_vectors=False)
    asked = asked_with_tokens(1)
    found = retrieved(view, asked, DEPTHS[0])
    assert not found.late_interaction
    assert found == retrieved(view, replace(asked, tokens=None), DEPTHS[0])


def test_missing_token_vectors_are_computed_once(base: ShardView) -> None:
    model = FakePassageTokens()
    late, asked = ranking(model), asked_with_tokens(3)
    view = replace(base, segments=(*base.segments, PlacedSegment(in_memory(ALL[20:]), 20)))
    depth = RetrievalDepth(passages=4, candidates=60, by_words=60)
    first, second = (retrieve(view, asked, depth, 0.05, None, late) for _ in range(2))
    assert first == second
    assert sorted(model.computed) == sorted(each.passage.id for each in ALL[20:])


def test_a_question_computes_few_and_is_ranked_without_late_interaction_until_all_are_there(
    base: ShardView,
) -> None:
    """After many writes a question must not wait until all of them are encoded."""
    model = FakePassageTokens()
    late, asked = ranking(model, max_computed=39, clock=ManualClock()), asked_with_tokens(3)
    view = replace(base, segments=(*base.segments, PlacedSegment(in_memory(ALL[20:]), 20)))
    depth = RetrievalDepth(passages=4, candidates=60, by_words=60)
    plain = retrieve(view, replace(asked, tokens=None), depth, 0.05)
    found = retrieve(view, asked, depth, 0.05, None, late)
    assert found == replace(plain, without_tokens=40)
    assert not model.computed
    background = BackgroundTokens()
    background.update(late.scorer, view)
    assert background.wait_until_idle(LONG)
    background.close()
    assert retrieve(view, asked, depth, 0.05, None, late).late_interaction
    assert len(model.computed) == len(set(model.computed)) == 40


def test_questions_of_all_shards_share_the_passages_that_they_may_compute() -> None:
    clock = ManualClock()
    computed = ComputedTokens(max_computed=8, clock=clock)
    assert computed.admit(5)
    assert not computed.admit(4)
    assert computed.admit(3)
    clock.advance(0.5)
    assert computed.admit(4)
    assert not computed.admit(1)


def test_a_question_does_not_wait_until_the_model_is_open(base: ShardView) -> None:
    """Opening it verifies the bundle, which takes longer than a question has time."""

    class ClosedModel:
        opened = None

        def open(self) -> PassageTokens:
            raise AssertionError

        def close(self) -> None:
            raise AssertionError

    late = replace(ranking(), scorer=LateScorer(ClosedModel(), ComputedTokens()))
    view = replace(base, segments=(*base.segments, PlacedSegment(in_memory(ALL[20:25]), 20)))
    depth = RetrievalDepth(passages=4, candidates=60, by_words=60)
    found = retrieve(view, asked_with_tokens(3), depth, 0.05, None, late)
    assert found.hits
    assert not found.late_interaction


def test_shards_with_equal_ids_and_writes_share_no_token_vectors(base: ShardView) -> None:
    """A closed shard may be opened again with other passages, for example from a snapshot."""
    computed, model = ComputedTokens(max_computed=1_000), FakePassageTokens()
    depth = RetrievalDepth(passages=40, candidates=60, by_words=60)
    for texts in (ALL[20:40], ALL[40:60]):
        own = [
            replace(each, passage=replace(each.passage, id=f"new {number}"))
            for number, each in enumerate(texts)
        ]
        view = replace(base, segments=(*base.segments, PlacedSegment(in_memory(own), 20)))
        late = replace(ranking(), scorer=LateScorer(OpenModel(model), computed))
        found = retrieve(view, asked_with_tokens(3), depth, 0.05, None, late)
        assert found == retrieve(view, asked_with_tokens(3), depth, 0.05, None, ranking())


def test_damaged_token_vectors_are_not_used(tmp_path: Path) -> None:
    directory = tmp_path / "shard"
    opened(directory, ALL)
    data = bytearray((directory / "token-vectors.bin").read_bytes())
    data[100] ^= 1
    (directory / "token-vectors.bin").write_bytes(data)
    segment = open_shard(directory, 64, token_vectors_fingerprint=FINGERPRINT)
    assert segment.token_vectors is None


def date_back(path: Path) -> None:
    os.utime(path, (1, 1))


def cut_short(path: Path) -> None:
    os.truncate(path, 100)


@pytest.mark.parametrize("change", [date_back, cut_short])
def test_token_vectors_that_were_written_to_are_not_used_and_logged_once(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """They are derived: a question can do without them."""
    view, asked = opened(tmp_path / "shard", ALL), asked_with_tokens(1)
    assert retrieved(view, asked, DEPTHS[0]).late_interaction
    change(tmp_path / "shard" / TOKEN_VECTORS.data)
    plain = retrieved(view, replace(asked, tokens=None), DEPTHS[0])
    with capture_logs() as logs:
        for _ in range(2):
            found = retrieved(view, asked, DEPTHS[0])
            assert not found.late_interaction
            assert found.hits == plain.hits
    (logged,) = logs
    assert "the token vectors of the shard cannot be read" in logged["event"]


def test_token_vectors_of_another_encoder_are_not_used(tmp_path: Path) -> None:
    opened(tmp_path / "shard", ALL[:5])
    assert (
        open_shard(tmp_path / "shard", 64, token_vectors_fingerprint="0" * 16).token_vectors is None
    )


def test_rows_without_passage_have_no_token_vectors(tmp_path: Path) -> None:
    make(tmp_path / "shard", ALL[:9], ALL, holes=(3, 8))
    write_token_vectors(tmp_path / "shard")
    file = open_shard(tmp_path / "shard", 64, token_vectors_fingerprint=FINGERPRINT).token_vectors
    assert file is not None
    has = file.has_rows(np.arange(11))
    assert np.flatnonzero(~has).tolist() == [3, 8, 9, 10]


@pytest.mark.graph
def test_the_default_search_width_is_narrower_with_token_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A width that is set is used for all shards; the default is 128 or 256."""
    make(tmp_path / "plain", ALL, ALL)
    opened(tmp_path / "late", ALL)
    widths: list[int] = []
    set_ef = GraphIndex.__init__

    def record(index: GraphIndex, graph: Any, ef: int, *rest: Any, **others: Any) -> None:
        widths.append(ef)
        set_ef(index, graph, ef, *rest, **others)

    monkeypatch.setattr(GraphIndex, "__init__", record)
    for ef in (DEFAULT_EF, 64):
        for name in ("plain", "late"):
            open_shard(tmp_path / name, ef, exact_up_to=0, token_vectors_fingerprint=FINGERPRINT)
    assert widths == [256, 128, 64, 64]
