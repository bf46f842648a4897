"""A shard in this process: identity and bad rows."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG, turn

from winnow.bundle import Bundle
from winnow.content_node.admission import NodeLoad
from winnow.content_node.identity import shard_info
from winnow.content_node.metrics import NodeMetrics
from winnow.content_node.searcher import LocalSearcher
from winnow.content_node.shard import ShardView, StoredSegment, open_shard, view_of
from winnow.content_node.shard.retrieving import retrieve
from winnow.content_node.shard.store import PassageStore
from winnow.deadline import Deadline
from winnow.domain.listing import CountRequest, PassageListing
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.shard import shard_name
from winnow.errors import (
    DeadlineExceededError,
    GenerationGoneError,
    IdentityError,
    InvalidRequestError,
    OverloadedError,
)
from winnow.inference.stop_signal import StopSignal
from winnow.policy.pace import Pace
from winnow.reading import open_reader
from winnow.reading.pool import Item, PoolResult, ReaderPool, Result
from winnow.reading.stored_passage import StoredPassage
from winnow.shard_service.limits import check_answer_tokens, check_hits, check_passages
from winnow.text.tokenizer import Tokenizer


@pytest.fixture
def shard(indexes: dict[int, Path]) -> StoredSegment:
    return open_shard(indexes[1] / shard_name(0, 1), ef=64)


@pytest.fixture
def pace() -> Pace:
    return Pace(2.0, ManualClock())


class Recording(ReaderPool):
    """A pool that records the deadlines of its calls."""

    def __init__(self) -> None:
        super().__init__(2, 2, NodeMetrics(CollectorRegistry()))
        self.deadlines: list[Deadline] = []

    async def map(
        self,
        work: Callable[[Item, StopSignal], Result],
        items: Sequence[Item],
        deadline: Deadline,
        on_item_done: Callable[[], None] | None = None,
        client: str = "",
    ) -> PoolResult[Result]:
        self.deadlines.append(deadline)
        return await super().map(work, items, deadline, on_item_done, client)


@pytest.fixture
def pool() -> Iterator[Recording]:
    made = Recording()
    yield made
    made.close()


@pytest.fixture
def searcher(shard: StoredSegment, bundle: Bundle, pace: Pace, pool: Recording) -> LocalSearcher:
    metrics = NodeMetrics(CollectorRegistry())
    reader = open_reader(bundle, Tokenizer(bundle.tokenizer).special)
    return LocalSearcher(view_of(shard), reader, bundle, pool, pace=pace, metrics=metrics)


@pytest.fixture
def question(shard: StoredSegment, bundle: Bundle) -> EncodedQuestion:
    vector = shard.store.vectors(shard.manifest.dimension)[3]
    return EncodedQuestion(
        text="q", token_ids=(2040,), vector=vector, bundle_fingerprint=bundle.manifest.fingerprint
    )


async def test_the_nearest_passage_of_a_vector_is_its_own(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=100), Deadline.after(LONG))
    assert found.hits[0].row == 3
    assert found.hits[0].distance == pytest.approx(0, abs=1e-6)
    assert len(found.hits) == (await searcher.info(Deadline.after(LONG))).passages
    distances = [hit.distance for hit in found.hits]
    assert distances == sorted(distances)


def test_words_in_common_bring_a_passage_forward(
    shard: StoredSegment, question: EncodedQuestion
) -> None:
    dense = retrieve(view_of(shard), question, RetrievalDepth(passages=3), 0.0).hits
    last = dense[-1]
    words = shard.store.load([last.row])[0].tokens.ids
    asked = replace(question, token_ids=words)
    hybrid = retrieve(view_of(shard), asked, RetrievalDepth(passages=1, candidates=3), 1.0).hits
    assert hybrid[0].row == last.row
    assert hybrid[0].distance == last.distance
    assert hybrid[0].hybrid_distance < last.hybrid_distance == last.distance
    for weight in (0.0, 1.0):  # nothing to choose among
        found = retrieve(view_of(shard), asked, RetrievalDepth(passages=3), weight).hits
        assert [(hit.row, hit.hybrid_distance) for hit in found] == [
            (hit.row, hit.distance) for hit in dense
        ]


async def test_search_is_retrieve_and_read(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=3), Deadline.after(LONG))
    read = await searcher.read(question, found.hits, Deadline.after(LONG))
    both = await searcher.search(question, RetrievalDepth(passages=3), Deadline.after(LONG))
    assert both.readings == read.readings


async def test_retrieval_and_every_reading_are_placed_in_the_time_of_the_call(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    before = time.perf_counter()
    both = await searcher.search(question, RetrievalDepth(passages=3), Deadline.after(LONG))
    whole = time.perf_counter() - before
    assert both.retrieved.start >= 0
    assert both.retrieved.seconds == both.timings.retrieve > 0
    retrieved_at = both.retrieved.start + both.retrieved.seconds
    assert len(both.readings) == 3
    for each in both.readings:
        assert retrieved_at <= each.span.start < each.span.start + each.span.seconds <= whole


async def test_every_passage_read_counts_for_the_pace_and_retrieving_does_not(
    searcher: LocalSearcher, question: EncodedQuestion, pace: Pace
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=3), Deadline.after(LONG))
    assert pace.seconds is None
    await searcher.read(question, found.hits, Deadline.after(LONG))
    assert pace.seconds == 0.0


async def test_a_question_of_another_bundle_or_dimension_is_refused(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    other = replace(question, bundle_fingerprint="other")
    with pytest.raises(IdentityError, match="encoded by bundle other"):
        await searcher.retrieve(other, RetrievalDepth(passages=3), Deadline.after(LONG))
    short = replace(question, vector=np.ones(3, np.float32))
    with pytest.raises(IdentityError, match="has 3 values"):
        await searcher.search(short, RetrievalDepth(passages=3), Deadline.after(LONG))


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"encoding_fingerprint": "other"}, r"was encoded by bundle .*other"),
        ({"dimension": 4_096}, "the manifest of shard .* says vectors of 4096 values"),
    ],
)
def test_a_shard_that_this_encoder_did_not_make_is_refused(
    shard: StoredSegment, bundle: Bundle, altered: dict[str, object], said: str
) -> None:
    changed = shard.manifest.model_copy(update=altered)
    with pytest.raises(IdentityError, match=said):
        shard_info(view_of(replace(shard, manifest=changed)), bundle)


async def test_a_missing_row_is_a_field_violation(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    with pytest.raises(InvalidRequestError, match=r"hits\[1\]\.row"):
        await searcher.read(
            question,
            [
                Hit(row=0, passage_id="a", distance=1.0, hybrid_distance=1.0),
                Hit(row=10**9, passage_id="b", distance=1.0, hybrid_distance=1.0),
            ],
            Deadline.after(LONG),
        )


async def test_a_row_of_another_generation_is_not_read_in_this_one(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=1), Deadline.after(LONG))
    info = await searcher.info(Deadline.after(LONG))
    assert [hit.generation for hit in found.hits] == [info.generation]
    with pytest.raises(GenerationGoneError, match="generation other"):
        await searcher.read(
            question, [replace(found.hits[0], generation="other")], Deadline.after(LONG)
        )
    read = await searcher.read(
        question, [replace(found.hits[0], generation="")], Deadline.after(LONG)
    )
    assert len(read.readings) == 1


async def test_expired_work_never_runs(searcher: LocalSearcher, question: EncodedQuestion) -> None:
    with pytest.raises(DeadlineExceededError):
        await searcher.search(question, RetrievalDepth(passages=3), Deadline.after(-1))


@pytest.mark.parametrize(
    "check",
    [
        lambda: check_passages(0),
        lambda: check_passages(10**6),
        lambda: check_answer_tokens(0),
        lambda: check_answer_tokens(10**6),
        lambda: check_hits(
            [
                Hit(row=1, passage_id="a", distance=1.0, hybrid_distance=1.0),
                Hit(row=1, passage_id="a", distance=1.0, hybrid_distance=1.0),
            ]
        ),
        lambda: check_hits([Hit(row=1, passage_id="a", distance=-0.1, hybrid_distance=1.0)]),
        lambda: check_hits(
            [Hit(row=1, passage_id="a", distance=float("nan"), hybrid_distance=1.0)]
        ),
        lambda: check_hits(
            [Hit(row=1, passage_id="a", distance=float("inf"), hybrid_distance=1.0)]
        ),
        lambda: check_hits(
            [Hit(row=1, passage_id="a", distance=1.0, hybrid_distance=float("nan"))]
        ),
    ],
)
def test_impossible_requests_are_refused(check: object) -> None:
    with pytest.raises(InvalidRequestError):
        check()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"token_ids": ()}, r"question\.token_ids: it has 0 tokens"),
        ({"token_ids": (1,) * 63}, r"question\.token_ids: it has 63 tokens, .* 1 to 62"),
        ({"token_ids": (30_522,)}, r"question\.token_ids: 30522 is not a token"),
        ({"vector": np.zeros(384, np.float32)}, r"question\.vector: its norm is 0"),
        ({"vector": np.full(384, 3e38, np.float32)}, r"question\.vector: its norm is"),
    ],
)
async def test_a_question_that_the_bundle_cannot_have_encoded_is_refused(
    searcher: LocalSearcher, question: EncodedQuestion, altered: dict[str, object], said: str
) -> None:
    wrong = replace(question, **altered)  # type: ignore[arg-type]
    deadline = Deadline.after(LONG)
    with pytest.raises(InvalidRequestError, match=said):
        await searcher.retrieve(wrong, RetrievalDepth(passages=3), deadline)
    with pytest.raises(InvalidRequestError, match=said):
        await searcher.read(
            wrong, [Hit(row=0, passage_id="a", distance=1.0, hybrid_distance=1.0)], deadline
        )
    with pytest.raises(InvalidRequestError, match=said):
        await searcher.search(wrong, RetrievalDepth(passages=3), deadline)


async def test_the_longest_question_with_the_greatest_token_is_read(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    longest = replace(question, token_ids=(30_521,) * 62)
    read = await searcher.search(longest, RetrievalDepth(passages=12), Deadline.after(LONG))
    assert (len(read.readings), read.unread) == (12, 0)


async def test_readings_finished_by_the_deadline_are_returned_and_the_rest_counted(
    searcher: LocalSearcher, question: EncodedQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, may_load = ManualClock(), threading.Event()
    load = PassageStore.load

    def slow(store: PassageStore, rows: list[int]) -> list[StoredPassage]:
        assert may_load.wait(LONG)
        clock.advance(LONG)
        return load(store, rows)

    found = await searcher.retrieve(question, RetrievalDepth(passages=9), Deadline.after(LONG))
    monkeypatch.setattr(PassageStore, "load", slow)
    deadline = Deadline.after(3 * LONG, clock)
    reading = asyncio.create_task(searcher.read(question, found.hits, deadline))
    await turn()  # until it waits for the threads: a deadline in the past would end that at once
    may_load.set()
    read = await reading
    assert len(read.readings) in (3, 4)  # of two threads
    assert len(read.readings) + read.unread == 9


async def test_reading_ends_a_little_before_the_caller_gives_up(
    searcher: LocalSearcher, question: EncodedQuestion, pool: Recording
) -> None:
    clock = ManualClock()
    for left, reserve in [(5.0, 0.01), (0.05, 0.005)]:
        with contextlib.suppress(DeadlineExceededError):  # a busy machine may not read in time
            await searcher.read(
                question,
                [Hit(row=0, passage_id="a", distance=1.0, hybrid_distance=1.0)],
                Deadline.after(left, clock),
            )
        assert pool.deadlines.pop().left() == pytest.approx(left - reserve)


async def test_questions_in_hand_are_read_from_the_generation_they_retrieved_from(
    searcher: LocalSearcher, question: EncodedQuestion, shard: StoredSegment
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=2), Deadline.after(LONG))
    before = await searcher.read(question, found.hits, Deadline.after(LONG))
    newer = generation(shard, "feed")
    searcher.set_view(newer)
    info = await searcher.info(Deadline.after(LONG))
    assert info.generation == newer.generation != found.hits[0].generation
    after = await searcher.read(question, found.hits, Deadline.after(LONG))
    assert after.readings == before.readings
    again = await searcher.retrieve(question, RetrievalDepth(passages=2), Deadline.after(LONG))
    assert {hit.generation for hit in again.hits} == {info.generation}


async def test_a_question_that_must_know_of_a_write_waits_until_it_is_served(
    searcher: LocalSearcher, question: EncodedQuestion, shard: StoredSegment
) -> None:
    depth = RetrievalDepth(passages=1, after=2)
    with pytest.raises(DeadlineExceededError, match="write 2 was not served in time"):
        await searcher.retrieve(question, depth, Deadline.after(0.01))
    waiting = asyncio.create_task(searcher.retrieve(question, depth, Deadline.after(60)))
    await asyncio.sleep(0)
    searcher.set_view(replace(view_of(shard), sequence=1))
    await asyncio.sleep(0)
    assert not waiting.done()
    searcher.set_view(replace(view_of(shard), sequence=2, passages=41))
    found = await waiting
    assert (found.sequence, found.passages) == (2, 41)


async def test_hits_of_two_generations_at_once_are_a_field_violation(
    searcher: LocalSearcher, question: EncodedQuestion
) -> None:
    [hit] = (
        await searcher.retrieve(question, RetrievalDepth(passages=1), Deadline.after(LONG))
    ).hits
    with pytest.raises(InvalidRequestError, match=r"hits\[1\]: is of another generation"):
        await searcher.read(question, [hit, replace(hit, generation="other")], Deadline.after(LONG))


async def test_another_shard_is_no_generation_of_this_one(
    searcher: LocalSearcher, shard: StoredSegment
) -> None:
    manifest = shard.manifest.model_copy(update={"index_id": "other"})
    with pytest.raises(IdentityError, match="new view is of shard 0 of index other"):
        searcher.set_view(view_of(replace(shard, manifest=manifest)))


def follows(view: ShardView, name: str) -> ShardView:
    """The same passages, in a generation of this name, with a log."""
    return replace(view, generation=name, log_id="log", sequence=7)


async def test_a_hit_of_another_replica_of_the_log_is_found_again_by_its_passage(
    searcher: LocalSearcher, question: EncodedQuestion, shard: StoredSegment
) -> None:
    found = await searcher.retrieve(question, RetrievalDepth(passages=2), Deadline.after(LONG))
    before = await searcher.read(question, found.hits, Deadline.after(LONG))
    searcher.set_view(follows(view_of(shard), "merged"))
    there = [replace(hit, row=hit.row + 1_000, generation="elsewhere") for hit in found.hits]
    again = await searcher.read(question, there, Deadline.after(LONG))
    assert again.readings == before.readings
    for gone in ({"sequence": 8}, {"passage_id": "nobody"}):
        with pytest.raises(GenerationGoneError, match=r"1 of 2 hits .* retrieve again"):
            await searcher.read(
                question, [there[0], replace(there[1], **gone)], Deadline.after(LONG)
            )


async def test_a_row_that_a_replica_does_not_have_yet_is_retrieved_again(
    searcher: LocalSearcher, question: EncodedQuestion, shard: StoredSegment
) -> None:
    searcher.set_view(follows(view_of(shard), "live"))
    found = await searcher.retrieve(question, RetrievalDepth(passages=1), Deadline.after(LONG))
    assert (found.sequence, found.log_id) == (7, "log")
    with pytest.raises(GenerationGoneError, match="this replica has no row 1000 yet"):
        await searcher.read(question, [replace(found.hits[0], row=1_000)], Deadline.after(LONG))


async def test_hits_by_words_come_with_their_distance(
    searcher: LocalSearcher, question: EncodedQuestion, shard: StoredSegment
) -> None:
    asked = replace(question, token_ids=shard.store.load([5])[0].tokens.ids[:20])
    dense, sparse = [
        await searcher.retrieve(asked, depth, Deadline.after(LONG))
        for depth in (RetrievalDepth(passages=12), RetrievalDepth(passages=2, by_words=4))
    ]
    assert (sparse.hits[0].row, len(sparse.hits)) == (5, 2)
    assert len(sparse.candidate_words) == 4
    assert sparse.candidate_words[0] == sparse.hits[0].words > 0
    assert (dense.candidate_words, sparse.candidate_distances) == ((), ())
    told = {hit.row: (hit.distance, hit.words) for hit in dense.hits}
    assert all(told[hit.row] == (hit.distance, hit.words) for hit in sparse.hits)
    read = await searcher.search(
        asked, RetrievalDepth(passages=1, by_words=4), Deadline.after(LONG)
    )
    assert [each.words for each in read.readings] == [sparse.hits[0].words]


def generation(shard: StoredSegment, name: str) -> ShardView:
    """The same passages in another generation."""
    entry = shard.manifest.files[shard.manifest.store]
    other = entry.model_copy(update={"sha256": name + entry.sha256[len(name) :]})
    files = {**shard.manifest.files, shard.manifest.store: other}
    manifest = shard.manifest.model_copy(update={"files": files})
    return view_of(replace(shard, manifest=manifest, generation=manifest.generation))


async def test_passages_are_listed_once_the_required_write_is_served(
    searcher: LocalSearcher, shard: StoredSegment
) -> None:
    first = await searcher.passages.fetch(PassageListing(limit=2), Deadline.after(60))
    assert [each.id for each in first.passages] == sorted(each.id for each in first.passages)
    waiting = asyncio.create_task(
        searcher.passages.fetch(CountRequest(after=5), Deadline.after(60))
    )
    await turn()
    assert not waiting.done()
    searcher.set_view(replace(view_of(shard), sequence=5, log_id="log", passages=17))
    count = await waiting
    assert (count.passages, count.sequence, count.log_id) == (17, 5, "log")
    with pytest.raises(DeadlineExceededError):
        await searcher.passages.fetch(CountRequest(after=6), Deadline.after(0.01))


async def test_too_many_calls_for_passages_are_refused(
    shard: StoredSegment, bundle: Bundle, pace: Pace, pool: Recording
) -> None:
    metrics = NodeMetrics(CollectorRegistry())
    load = NodeLoad(1, pace=pace, clock=ManualClock(), metrics=metrics)
    reader = open_reader(bundle, Tokenizer(bundle.tokenizer).special)
    searcher = LocalSearcher(
        view_of(shard),
        reader,
        bundle,
        pool,
        pace=pace,
        metrics=metrics,
        admit=load.admit_retrieval,
    )
    await searcher.passages.fetch(CountRequest(), Deadline.after(60))
    with load.admit_retrieval(), pytest.raises(OverloadedError):
        await searcher.passages.fetch(CountRequest(), Deadline.after(60))
