"""The life of a question over fake shards, with the real encoder."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from stateless.answer.admission import Admitted
from stateless.answer.answering import Answerer
from stateless.answer.calls import Limits
from stateless.cluster.cluster import Cluster
from stateless.encoding import QuestionEncoder
from stateless.heads.metrics import HeadMetrics
from stateless.heads.predictor import Predictor
from stateless.heads.questions import QuestionHeads
from stateless.heads.ring import Ring
from stateless.heads.rings import Rings
from stateless.metrics import FrontMetrics
from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.coverage import ShardStatus
from winnow.domain.prediction import TokenSpan
from winnow.domain.question import PartialResults, Question, ReadScope, Retriever
from winnow.domain.shard import ShardInfo
from winnow.domain.stopping import StoppingRule
from winnow.errors import (
    DeadlineExceededError,
    UnavailableError,
    WinnowError,
)
from winnow.fakes import FINGERPRINT, FakeHeads, FakeSearcher, FakeTextEncoder, reading
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.policy.kept import MIB
from winnow.text.cached import CachedTextEncoder
from winnow.text.encoder import TextEncoding
from winnow.text.tokenizer import Tokenizer

INFOS = {n: ShardInfo(n, 3, "i", 10 * (n + 1), 2, "fake", FINGERPRINT) for n in range(3)}
ASKED = Admitted(Question("Who is it?", 5, 2, ReadScope.GLOBAL, Retriever.DENSE, 10), 5, 5)
WITH_HEADS = replace(ASKED, question=replace(ASKED.question, heads=("intent", "names")))


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


def answerer(
    encoder: QuestionEncoder,
    registry: CollectorRegistry,
    *shards: FakeSearcher,
    rule: StoppingRule | None = None,
    heads: QuestionHeads | None = None,
) -> Answerer:
    cluster = Cluster(dict(enumerate(shards)), {n: INFOS[n] for n in range(len(shards))})
    return Answerer(
        encoder, cluster, 0.0, lambda _: rule, Limits(0.02, 0.4), FrontMetrics(registry), heads
    )


@pytest.fixture
def stateful(bundle: Bundle) -> Iterator[QuestionEncoder]:
    """An encoder that gives the states of tokens, too."""
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special, states=True)
    made = QuestionEncoder(bundle, tokenizer, CachedTextEncoder(LocalTextEncoder(model, 1), 2))
    yield made
    made.close()


def of_questions(bundle: Bundle, heads: FakeHeads) -> QuestionHeads:
    """`heads` in a ring whose encoder nobody needs: questions are encoded already."""
    ring = Ring(
        "en", "f", Tokenizer(bundle.tokenizer), FakeTextEncoder(fails=WinnowError()), 8, heads
    )
    return QuestionHeads(Predictor(Rings([ring]), HeadMetrics(CollectorRegistry())), ring)


async def test_the_best_answer_of_all_shards_comes_first(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    shards = [FakeSearcher([reading("a", 1.0)]), FakeSearcher([reading("b", 3.0), reading("c", 2)])]
    got = await answerer(encoder, registry, *shards).answer(ASKED, Deadline.after(5))
    assert [(a.reading.passage.id, a.shard) for a in got.answers] == [("b", 1), ("c", 1)]
    assert (got.has_answer, got.passages_read, got.coverage.complete) == (True, 3, True)
    assert registry.get_sample_value("winnow_front_passages_read_sum") == 3


async def test_an_unlikely_answer_is_listed_but_not_shown_as_one(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    got = await answerer(encoder, registry, FakeSearcher([reading("a", -1.0)])).answer(
        ASKED, Deadline.after(5)
    )
    assert not got.has_answer
    assert len(got.answers) == 1


async def test_a_dead_shard_shows_in_coverage_and_metrics(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    got = await answerer(encoder, registry, FakeSearcher([reading("a")]), dead).answer(
        ASKED, Deadline.after(5)
    )
    coverage = got.coverage
    assert (coverage.known, coverage.searched, coverage.complete) == (30, 10, False)
    labels = {"shard": "1", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_no_shard_at_all_is_an_error_not_an_empty_success(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    with pytest.raises(UnavailableError, match="shard 0: gone"):
        await answerer(encoder, registry, dead).answer(ASKED, Deadline.after(5))
    labels = {"shard": "0", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_a_dead_shard_shows_in_metrics_also_where_partial_results_are_forbidden(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    question = replace(ASKED.question, partial_results=PartialResults.FORBID)
    dead = FakeSearcher([reading("b")], fails=UnavailableError("gone"))
    with pytest.raises(UnavailableError, match="shard 1: gone"):
        await answerer(encoder, registry, FakeSearcher([reading("a")]), dead).answer(
            replace(ASKED, question=question), Deadline.after(5)
        )
    labels = {"shard": "1", "status": "unavailable"}
    assert registry.get_sample_value("winnow_front_shard_failures_total", labels) == 1


async def test_shards_that_all_hang_are_a_deadline_exceeded(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    hung = FakeSearcher([reading("b")], hangs=True)
    deadline = Deadline.after(0.3)
    with pytest.raises(DeadlineExceededError):
        await answerer(encoder, registry, hung).answer(ASKED, deadline)
    await asyncio.wait_for(hung.released.wait(), 5)


async def test_a_shard_that_hangs_after_it_has_read_some_leaves_an_answer_and_says_so(
    encoder: QuestionEncoder, registry: CollectorRegistry
) -> None:
    shard = FakeSearcher([reading("a", 3.0, distance=0.1), reading("b", distance=0.2)])
    shard.reads_before_failing, shard.hangs_reading = 1, True
    rule = StoppingRule(0.0, 0.0, bar=100.0)
    got = await answerer(encoder, registry, shard, rule=rule).answer(ASKED, Deadline.after(0.5))
    assert [answer.reading.passage.id for answer in got.answers] == ["a"]
    assert not got.coverage.complete
    (part,) = got.coverage.shards
    assert part.status is ShardStatus.TIMEOUT
    assert part.reason == "no reply in time; 1 of its passages were read"


async def test_heads_read_the_questions_own_encoding(
    bundle: Bundle, stateful: QuestionEncoder, registry: CollectorRegistry
) -> None:
    heads = FakeHeads({"intent": ("ask", "tell")}, {"names": (TokenSpan("word", 0, 2, 0.5),)})
    predicting = of_questions(bundle, heads)
    got = await answerer(stateful, registry, FakeSearcher([reading("a")]), heads=predicting).answer(
        WITH_HEADS, Deadline.after(5)
    )
    intent, names = got.heads
    assert (intent.head_id, {each.label for each in intent.labels}) == ("intent", {"ask", "tell"})
    assert [each.text for each in names.entities] == ["Who is"]
    assert len(got.answers) == 1


async def test_a_question_that_names_no_heads_has_none_applied(
    bundle: Bundle, stateful: QuestionEncoder, registry: CollectorRegistry
) -> None:
    heads = FakeHeads()
    predicting = of_questions(bundle, heads)
    got = await answerer(stateful, registry, FakeSearcher([reading("a")]), heads=predicting).answer(
        ASKED, Deadline.after(5)
    )
    assert (got.heads, heads.applied) == ((), [])


@pytest.mark.parametrize("case", ["unknown", "fails", "has a bug", "hangs"])
async def test_an_answer_is_never_lost_for_a_head(
    bundle: Bundle, stateful: QuestionEncoder, registry: CollectorRegistry, case: str
) -> None:
    heads = FakeHeads({} if case == "unknown" else {"intent": ("a",), "names": ("b",)})
    heads.fails = {"fails": UnavailableError("gone"), "has a bug": ZeroDivisionError()}.get(case)
    heads.hangs = case == "hangs"
    deadline = Deadline.after(60)
    predicting = of_questions(bundle, heads)
    got = await answerer(stateful, registry, FakeSearcher([reading("a")]), heads=predicting).answer(
        WITH_HEADS, deadline
    )
    assert len(got.answers) == 1
    assert not deadline.expired()
    assert [each.head_id for each in got.heads] == ["intent", "names"]
    assert all(each.failure for each in got.heads)


@pytest.mark.parametrize("case", ["cancelled", "failed"])
async def test_a_question_that_ends_ends_its_heads(
    bundle: Bundle, stateful: QuestionEncoder, registry: CollectorRegistry, case: str
) -> None:
    heads, shard = FakeHeads(hangs=True), FakeSearcher([reading("a")], hangs=True)
    shard.fails_reading = UnavailableError("gone")
    call = asyncio.create_task(
        answerer(stateful, registry, shard, heads=of_questions(bundle, heads)).answer(
            WITH_HEADS, Deadline.after(60)
        )
    )
    await asyncio.wait_for(heads.hanging.wait(), 5)
    if case == "cancelled":
        call.cancel()
    else:
        shard.go_on.set()
    await asyncio.wait([call])
    await asyncio.wait_for(heads.released.wait(), 5)


class Broken:
    """An encoder that cannot be reached."""

    async def encode(self, ids: Sequence[int], client: str = "") -> TextEncoding:
        raise UnavailableError("the encoder is gone")

    async def warm_up(self, longest: int) -> None: ...

    def close(self) -> None: ...


async def test_what_keeps_heads_from_a_known_question_is_said_by_each_of_them(
    bundle: Bundle, registry: CollectorRegistry
) -> None:
    encoder = QuestionEncoder(bundle, Tokenizer(bundle.tokenizer), Broken())
    answering = answerer(encoder, registry)
    question = replace(ASKED.question, heads=("intent", "topic"))
    said = await answering.predict(question, Deadline.after(5), "")
    assert [(each.head_id, str(each.failure)) for each in said] == [
        ("intent", "the encoder is gone"),
        ("topic", "the encoder is gone"),
    ]
    assert await answering.predict(ASKED.question, Deadline.after(5), "") == ()
