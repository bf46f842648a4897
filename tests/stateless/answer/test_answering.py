"""The life of a question over fake shards, with the real encoder."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes import FakeSearcher, fake_infos, reading
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.confidence import Confidence
from winnow.domain.coverage import ShardStatus
from winnow.domain.question import PartialResults, Question, ReadScope, Retriever
from winnow.domain.stopping import StoppingRule
from winnow.domain.threshold import AnswerThreshold
from winnow.errors import (
    DeadlineExceededError,
    UnavailableError,
)
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.policy.byte_bounded_lru import MIB
from winnow.stateless.answer.admission import AdmittedQuestion
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.encoding import QuestionEncoder, TokenisedQuestion
from winnow.stateless.metrics import FrontMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.tokenizer import Tokenizer, Tokens

INFOS = fake_infos(3)
ASKED = AdmittedQuestion(
    Question(
        text="Who is it?",
        passages_to_read=5,
        answers=2,
        read_scope=ReadScope.GLOBAL,
        retriever=Retriever.DENSE,
        max_answer_tokens=10,
    ),
    5,
    5,
)

TOKENS = TokenisedQuestion("who", Tokens((2040,), ((0, 3),)), truncated=False)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def encoder(bundle: Bundle, registry: CollectorRegistry) -> Iterator[QuestionEncoder]:
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special)
    made = QuestionEncoder(bundle, tokenizer, CachedTextEncoder(LocalTextEncoder(model, 1), MIB))
    yield made
    made.close()


ANY_GOOD = AnswerThreshold(0.0)


def answerer(
    encoder: QuestionEncoder,
    registry: CollectorRegistry,
    *shards: FakeSearcher,
    rule: StoppingRule | None = None,
    confidence: Confidence | None = None,
    threshold: AnswerThreshold = ANY_GOOD,
    read_ahead: int = 0,
    token_vectors: str = "",
) -> Answerer:
    infos = {n: replace(INFOS[n], token_vectors=token_vectors) for n in range(len(shards))}
    cluster = Cluster(dict(enumerate(shards)), infos)
    return Answerer(
        encoder,
        cluster,
        calibration_for=lambda _: AnswerCalibration(threshold=threshold, confidence=confidence),
        rule_for=lambda *_: rule,
        limits=SearchLimits(
            merge_reserve=0.02, retrieve_share=0.4, read_ahead=read_ahead, candidates=10
        ),
        metrics=FrontMetrics(registry),
        has_late_interaction=True,
    )


async def test_the_best_answer_of_all_shards_comes_first(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    shards = [FakeSearcher([reading("a", 1.0)]), FakeSearcher([reading("b", 3.0), reading("c", 2)])]
    got = await answerer(encoder, registry, *shards).answer(ASKED, TOKENS, Deadline.after(LONG))
    assert [(a.reading.passage.id, a.shard) for a in got.answers] == [("b", 1), ("c", 1)]
    assert (got.has_answer, got.passages_read, got.coverage.complete) == (True, 3, True)
    assert registry.get_sample_value("winnow_front_passages_read_sum") == 3
    assert (got.passages_needed, got.max_loss) == (3, 0.0), "without a rule all are read"
    assert registry.get_sample_value("winnow_front_passages_needed_sum") == 3


async def test_it_says_what_stopping_might_lose_and_which_passages_the_answer_rests_on(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    shard = FakeSearcher([reading("a", 5.0, distance=0.1), reading("b", 1.0, distance=0.2)], idle=2)
    admitted = replace(ASKED, question=replace(ASKED.question, max_loss=0.3))
    stops = answerer(encoder, registry, shard, rule=StoppingRule(1.0, 1.0, 4.0), read_ahead=2)
    got = await stops.answer(admitted, TOKENS, Deadline.after(LONG))
    assert (got.max_loss, got.passages_needed, got.passages_read) == (0.3, 1, 2)
    assert registry.get_sample_value("winnow_front_passages_read_sum") == 2
    assert registry.get_sample_value("winnow_front_passages_needed_sum") == 1


async def test_an_unlikely_answer_is_listed_but_not_shown_as_one(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    got = await answerer(encoder, registry, FakeSearcher([reading("a", -1.0)])).answer(
        ASKED, TOKENS, Deadline.after(LONG)
    )
    assert not got.has_answer
    assert len(got.answers) == 1


@pytest.mark.parametrize(("least", "shown"), [(0.4, True), (0.6, False)])
async def test_a_minimum_confidence_of_the_bundle_replaces_the_minimum_score(
    encoder: QuestionEncoder, registry: CollectorRegistry, least: float, shown: bool
) -> None:
    even = Confidence(0.0, 0.0, 0.0, 0.0)  # every answer has a confidence of one half
    own = answerer(
        encoder,
        registry,
        FakeSearcher([reading("a", -1.0)]),
        confidence=even,
        threshold=AnswerThreshold(0.0, least),
    )
    got = await own.answer(ASKED, TOKENS, Deadline.after(LONG))
    assert got.has_answer is shown


@pytest.mark.parametrize("fitted", [None, Confidence(1.0, 0.0, 0.0, 0.0)])
async def test_every_answer_says_how_likely_it_is_if_the_bundle_can_tell(
    encoder: QuestionEncoder, registry: CollectorRegistry, fitted: Confidence | None
) -> None:
    shards = [FakeSearcher([reading("a", 1.0)]), FakeSearcher([reading("b", 3.0)])]
    own = answerer(encoder, registry, *shards, confidence=fitted)
    got = await own.answer(ASKED, TOKENS, Deadline.after(LONG))
    said = [answer.confidence for answer in got.answers]
    assert said == [None if fitted is None else fitted.of(a.reading) for a in got.answers]


@pytest.mark.parametrize(("token_vectors", "reason"), [("", "index"), ("t" * 16, "encoder")])
async def test_an_answer_without_late_interaction_that_all_shards_have_is_a_passing_one(
    encoder: QuestionEncoder, registry: CollectorRegistry, token_vectors: str, reason: str
) -> None:
    """An encoder server of an older version sends no token vectors of the question."""
    shard = FakeSearcher([reading("a", 1.0)])
    asked = answerer(encoder, registry, shard, token_vectors=token_vectors)
    for retriever in (Retriever.DENSE, Retriever.HYBRID):  # the first never uses it
        admitted = replace(ASKED, question=replace(ASKED.question, retriever=retriever))
        got = await asked.answer(admitted, TOKENS, Deadline.after(LONG))
        assert got.lost_late_interaction == bool(token_vectors)
    counted = {
        each: registry.get_sample_value(
            "winnow_front_without_late_interaction_total", {"reason": each}
        )
        for each in ("index", "encoder", "candidates")
    }
    assert counted == {each: float(each == reason) for each in counted}


async def test_a_dead_shard_shows_in_coverage_and_metrics(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    got = await answerer(encoder, registry, FakeSearcher([reading("a")]), dead).answer(
        ASKED, TOKENS, Deadline.after(LONG)
    )
    coverage = got.coverage
    assert (coverage.known, coverage.searched, coverage.complete) == (30, 10, False)
    labels = {"shard": "1", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_no_shard_at_all_is_an_error_not_an_empty_success(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    with pytest.raises(UnavailableError, match=r"shard 0: .*: gone"):
        await answerer(encoder, registry, dead).answer(ASKED, TOKENS, Deadline.after(LONG))
    labels = {"shard": "0", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_a_dead_shard_shows_in_metrics_also_where_partial_results_are_forbidden(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    question = replace(ASKED.question, partial_results=PartialResults.FORBID)
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    with pytest.raises(UnavailableError, match=r"shard 1: .*: gone"):
        await answerer(encoder, registry, FakeSearcher([reading("a")]), dead).answer(
            replace(ASKED, question=question), TOKENS, Deadline.after(LONG)
        )
    labels = {"shard": "1", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_shards_that_all_hang_are_a_deadline_exceeded(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    hung = FakeSearcher([reading("b")], hangs=True)
    deadline = Deadline.after(0.3, ManualClock())
    with pytest.raises(DeadlineExceededError):
        await answerer(encoder, registry, hung).answer(ASKED, TOKENS, deadline)
    await asyncio.wait_for(hung.released.wait(), LONG)


async def test_a_shard_that_hangs_after_it_has_read_some_leaves_an_answer_and_says_so(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    shard = FakeSearcher([reading("a", 3.0, distance=0.1), reading("b", distance=0.2)])
    shard.reads_before_failing, shard.hangs_reading = 1, True
    rule = StoppingRule(0.0, 0.0, bar=100.0)
    # only the read that hangs has little time
    deadline = Deadline(LONG, lambda: 0.0 if shard.reads_before_failing else LONG - 0.5)
    got = await answerer(encoder, registry, shard, rule=rule).answer(ASKED, TOKENS, deadline)
    assert [answer.reading.passage.id for answer in got.answers] == ["a"]
    assert not got.coverage.complete
    (part,) = got.coverage.shards
    assert part.status is ShardStatus.TIMEOUT
    assert part.reason == "no reply in time; 1 of its passages were read"
