"""A thread computes the token vectors of new passages, and keeps nothing that a merge replaced."""

import gc
import threading
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_token_vectors import (
    FINGERPRINT,
    FakePassageTokens,
    OpenModel,
    ranking,
    write_token_vectors,
)
from numpy.typing import NDArray
from shards_made import in_memory, make, passages
from tenacious import LONG

from winnow.content_node.late_interaction.background import BackgroundTokens
from winnow.content_node.late_interaction.computed_tokens import ComputedTokens, TokensKey
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.scoring import LateScorer
from winnow.content_node.shard import ShardView, open_shard, view_of
from winnow.content_node.shard.view import PlacedSegment
from winnow.content_node.states.file import StateFile
from winnow.errors import ArtefactError
from winnow.reading.stored_passage import StoredPassage

ALL = passages(40)
NEW = [each.passage.id for each in ALL[20:30]]


class HeldModel(FakePassageTokens):
    """Computes token vectors only after `release` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.release = threading.Event(), threading.Event()

    def levels(self, stored: StoredPassage) -> NDArray[np.int8]:
        self.begun.set()
        assert self.release.wait(LONG)
        return super().levels(stored)


def opened(directory: Path, holes: tuple[int, ...] = ()) -> ShardView:
    """A shard of 20 rows, 10 of which were written later."""
    make(directory, ALL[:20], ALL, holes)
    write_token_vectors(directory)
    base = view_of(open_shard(directory, 64, token_vectors_fingerprint=FINGERPRINT))
    return replace(base, segments=(*base.segments, PlacedSegment(in_memory(ALL[20:30]), 20)))


@pytest.fixture
def view(tmp_path: Path) -> ShardView:
    return opened(tmp_path / "shard")


@pytest.fixture
def background() -> Iterator[BackgroundTokens]:
    background = BackgroundTokens()
    yield background
    background.close()


def merged(view: ShardView) -> ShardView:
    """The view after a merge: its base has all passages."""
    return replace(view, generation="merged", segments=view.segments[:1])


def test_new_passages_are_computed_once_and_deleted_ones_never(
    view: ShardView, background: BackgroundTokens
) -> None:
    model = FakePassageTokens()
    scorer = ranking(model).scorer
    alive = np.ones(10, np.bool_)
    alive[3] = False
    base, new = view.segments
    view = replace(view, segments=(base, replace(new, live_rows=alive)))
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    further = PlacedSegment(in_memory(ALL[30:40]), 30)
    background.update(scorer, replace(view, segments=(*view.segments, further)))
    assert background.wait_until_idle(LONG)
    computed = [each.passage.id for each in ALL[20:40]]
    assert model.computed == [each for each in computed if each != computed[3]]


def test_a_merge_gets_the_computed_token_vectors_of_present_passages(
    view: ShardView, background: BackgroundTokens
) -> None:
    scorer = ranking().scorer
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    alive = np.ones(10, np.bool_)
    alive[3] = False
    base, new = view.segments
    view = replace(view, segments=(base, replace(new, live_rows=alive)))
    found = list(scorer.computed_tokens(view))
    names = [(identifier, sequence) for identifier, sequence, _ in found]
    assert names == view.ids_and_sequences([20, 21, 22, *range(24, 30)])
    stored = [new.segment.load(row) for row in (0, 1, 2, *range(4, 10))]
    for (_, _, levels), each in zip(found, stored, strict=True):
        assert levels.tolist() == FakePassageTokens().levels(each).tolist()


def cached(scorer: LateScorer, view: ShardView) -> list[tuple[str, int]]:
    """Passages of a view, and the numbers of their writes, whose token vectors are cached."""
    return [(identifier, sequence) for identifier, sequence, _ in scorer.computed_tokens(view)]


def test_token_vectors_that_a_merge_stored_are_forgotten_and_later_ones_are_not(
    view: ShardView, background: BackgroundTokens
) -> None:
    """The cache has room for those that are needed, and a closed shard leaves nothing in it."""
    scorer = ranking().scorer
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    (*_, (last, sequence)) = cached(scorer, view)
    assert len(cached(scorer, view)) == 10
    scorer.keep(last, sequence + 1, np.zeros((1, 8), np.int8))  # of a write after the merge
    manifest = view.manifest.model_copy(update={"sequence": sequence})
    after = merged(replace(view, manifest=manifest))
    background.update(scorer, after)
    background.forget_merged(scorer, after)
    background.update(scorer, after)
    assert background.wait_until_idle(LONG)
    assert not cached(scorer, view)
    assert len(scorer._computed._levels) == 1
    background.remove(scorer)
    scorer.keep(last, sequence + 2, np.zeros((1, 8), np.int8))
    assert not scorer._computed._levels.bytes


def test_token_vectors_that_a_merge_could_not_store_stay_in_memory(
    view: ShardView, background: BackgroundTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks_first(_: StateFile, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        has: NDArray[np.bool_] = rows != 0
        return has

    monkeypatch.setattr(StateFile, "has_rows", lacks_first)
    scorer = ranking().scorer
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    background.forget_merged(scorer, merged(view))
    assert background.wait_until_idle(LONG)
    assert len(cached(scorer, view)) == 1 + 10


def test_rows_whose_passages_a_merge_removed_do_not_stop_the_computation(
    tmp_path: Path, background: BackgroundTokens
) -> None:
    model = FakePassageTokens()
    background.update(ranking(model).scorer, opened(tmp_path / "shard", holes=(3, 8)))
    assert background.wait_until_idle(LONG)
    assert model.computed == NEW


def test_a_view_that_was_handled_is_not_kept(tmp_path: Path, background: BackgroundTokens) -> None:
    """Its base has a graph in memory and open files."""
    view = opened(tmp_path / "shard")
    kept = weakref.ref(view.segments[0].segment.token_vectors)
    background.update(ranking().scorer, view)
    del view
    assert background.wait_until_idle(LONG)
    gc.collect()
    assert kept() is None


def test_a_merge_replaces_a_view_that_waits(view: ShardView, background: BackgroundTokens) -> None:
    model, held = FakePassageTokens(), HeldModel()
    scorer = ranking(model).scorer
    background.update(ranking(held).scorer, view)
    assert held.begun.wait(LONG)
    background.update(scorer, view)
    background.update(scorer, merged(view))
    held.release.set()
    assert background.wait_until_idle(LONG)
    assert not model.computed


def test_shards_take_turns(view: ShardView) -> None:
    """A bulk load of one index must not delay the new passages of another."""
    background = BackgroundTokens(turn_passages=2)
    held, model = HeldModel(), FakePassageTokens()
    held.computed = model.computed  # one list, in the order of both
    background.update(ranking(held).scorer, view)
    assert held.begun.wait(LONG)
    background.update(ranking(model).scorer, view)
    held.release.set()
    assert background.wait_until_idle(LONG)
    background.close()
    assert model.computed == [each for n in range(0, 10, 2) for each in NEW[n : n + 2] * 2]


@pytest.mark.parametrize("ended_by", ["merge", "close"])
def test_computing_ends_with_the_generation(
    view: ShardView, background: BackgroundTokens, ended_by: str
) -> None:
    held = HeldModel()
    scorer = ranking(held).scorer
    background.update(scorer, view)
    assert held.begun.wait(LONG)
    if ended_by == "merge":
        background.update(scorer, merged(view))
    else:
        background.remove(scorer)
    held.release.set()
    assert background.wait_until_idle(LONG)
    assert held.computed == NEW[:1]


def test_a_shard_is_tried_again_after_a_failure(view: ShardView) -> None:
    """Otherwise questions would be ranked without late interaction until the next write."""

    class FailsOnce(OpenModel):
        failures = 0

        def open(self) -> PassageTokens:
            if not self.failures:
                self.failures += 1
                raise ArtefactError("too many open files")
            return super().open()

    model, background = FakePassageTokens(), BackgroundTokens(retry_seconds=0.0)
    background.update(LateScorer(FailsOnce(model), ComputedTokens()), view)
    assert background.wait_until_idle(LONG)
    background.close()
    assert model.computed == NEW


def test_the_model_is_closed_when_nothing_is_left_to_compute(view: ShardView) -> None:
    model, background = OpenModel(FakePassageTokens()), BackgroundTokens(idle_seconds=0.0)
    background.update(LateScorer(model, ComputedTokens()), view)
    assert model.closed.wait(LONG)
    assert model.opened.computed == NEW
    background.close()


def test_the_model_stays_open_if_questions_may_need_it(view: ShardView) -> None:
    """Token vectors that were evicted are computed for questions."""
    model, other = OpenModel(FakePassageTokens()), OpenModel(FakePassageTokens())
    background = BackgroundTokens(idle_seconds=0.0)
    background.update(LateScorer(model, ComputedTokens(budget=2_000)), view)
    assert background.wait_until_idle(LONG)
    background.update(LateScorer(other, ComputedTokens()), view)
    assert other.closed.wait(LONG)  # so it was decided for both
    assert not model.closed.is_set()
    background.close()


def test_the_model_is_opened_if_token_vectors_that_were_sent_may_be_evicted(
    view: ShardView, background: BackgroundTokens
) -> None:
    """Otherwise questions with such candidates would be ranked without late interaction."""

    class ClosedModel(OpenModel):
        is_open = False

        def open(self) -> PassageTokens:
            self.is_open = True
            return super().open()

    segment = view.segments[1].segment
    sent = [
        (*segment.ids_and_sequences([row])[0], FakePassageTokens().levels(segment.load(row)))
        for row in range(segment.rows)
    ]
    for budget, is_opened in (
        (1 << 20, False),
        (sum(300 + each.nbytes for *_, each in sent), True),
    ):
        model = ClosedModel(FakePassageTokens())
        scorer = LateScorer(model, ComputedTokens(budget=budget))
        for each in sent:
            scorer.keep(*each)
        background.update(scorer, view)
        assert background.wait_until_idle(LONG)
        assert model.is_open == is_opened
        assert not model.opened.computed


def test_the_next_write_starts_a_thread_that_could_not_be_started(
    view: ShardView, background: BackgroundTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write itself must not fail: it is durable, and its caller waits for it."""
    model = FakePassageTokens()
    scorer = ranking(model).scorer

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        background.update(scorer, view)
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    assert model.computed == NEW


def test_nothing_is_computed_after_the_end(view: ShardView) -> None:
    model, background = FakePassageTokens(), BackgroundTokens()
    background.close()
    background.update(ranking(model).scorer, view)
    assert background.wait_until_idle(LONG)
    assert not model.computed


def test_a_shard_that_is_closed_while_token_vectors_are_kept_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed = ComputedTokens()
    scorer = LateScorer(OpenModel(FakePassageTokens()), computed)
    put = computed.put

    def close_first(key: TokensKey, levels: NDArray[np.int8]) -> None:
        scorer.close()
        put(key, levels)

    monkeypatch.setattr(computed, "put", close_first)
    scorer.keep("a", 1, np.zeros((1, 8), np.int8))
    assert not computed._levels.bytes


def test_the_model_of_a_dropped_index_is_freed_even_if_other_shards_always_have_work(
    view: ShardView, background: BackgroundTokens
) -> None:
    model = OpenModel(FakePassageTokens())
    kept, scorer = weakref.ref(model), LateScorer(model, ComputedTokens())
    background.update(scorer, view)
    assert background.wait_until_idle(LONG)
    background.remove(scorer)
    del model, scorer
    gc.collect()
    assert kept() is None


def test_the_last_shard_with_a_model_closes_it_although_another_one_has_used_it(
    view: ShardView,
) -> None:
    model, computed = OpenModel(FakePassageTokens()), ComputedTokens()
    first, second = (LateScorer(model, computed) for _ in range(2))
    background = BackgroundTokens(idle_seconds=0.2)
    background.update(second, merged(view))
    background.update(first, view)
    assert background.wait_until_idle(LONG)
    background.remove(first)
    assert model.closed.wait(LONG)
    background.close()
