"""Heads on questions: beside the answer, out of the same encoding, over fake shards."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from fakes import FakeHeads, FakeSearcher, FakeTextEncoder, reading, shard_info
from known_caller import called_by
from prometheus_client import CollectorRegistry
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.deadline import Deadline
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.prediction import TokenSpan
from winnow.domain.question import AnswerRequest, ReadScope
from winnow.domain.threshold import AnswerThreshold
from winnow.errors import PermissionDeniedError, UnavailableError, WinnowError
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.keys.key import Scope
from winnow.policy.byte_bounded_lru import MIB
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.stateless.answer.admission import Admission
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.answering import Answerer
from winnow.stateless.answer.calls import SearchLimits
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.cluster import Cluster
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.stateless.encoding import QuestionEncoder
from winnow.stateless.heads import questions
from winnow.stateless.heads.encoder_groups import EncoderGroup, EncoderGroups
from winnow.stateless.heads.metrics import HeadMetrics
from winnow.stateless.heads.predictor import Predictor
from winnow.stateless.heads.questions import QuestionHeads
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.text.cached import CachedTextEncoder
from winnow.text.tokenizer import Tokenizer

PLAIN = AnswerRequest(question="Who is it?")
WITH_HEADS = AnswerRequest(question="Who is it?", heads=("intent", "names"))


class Looks:
    """Counts what a cache is asked for."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def count_lookup(self, result: str) -> None:
        self.results.append(result)

    def resize(self, added_bytes: int, evicted: int) -> None:
        pass


class House:
    """An answer core with heads, over one fake shard and the real encoder."""

    def __init__(self, bundle: Bundle, heads: FakeHeads, shard: FakeSearcher) -> None:
        self.looks = Looks()
        tokenizer = Tokenizer(bundle.tokenizer)
        model = open_question_encoder(bundle, tokenizer.special, states=True)
        cached = CachedTextEncoder(LocalTextEncoder(model, 1), MIB, self.looks)
        self.encoder = QuestionEncoder(bundle, tokenizer, cached)
        registry = CollectorRegistry()
        metrics = FrontMetrics(registry)
        # the encoder group's own encoder is for texts that are no questions
        group = EncoderGroup(
            "en",
            "f",
            tokenizer=tokenizer,
            encoder=FakeTextEncoder(fails=WinnowError()),
            max_tokens=8,
            heads=heads,
        )
        predictor = Predictor(EncoderGroups([group]), HeadMetrics(registry))
        load = ReadLoad(LoadSettings(), time.monotonic, lambda: None)
        self.core = AnswerCore(
            QuestionDefaults(
                passages_to_read=10,
                answers=3,
                read_scope=ReadScope.GLOBAL,
                max_answer_tokens=10,
                serves_heads=True,
            ),
            Admission(load, 64, AdmissionMetrics(registry)),
            metrics,
            cache=AnswerCache(MIB, lambda: IndexVersion(("rows",), is_confirmed=True)),
            heads=QuestionHeads(predictor, group, self.encoder),
        )
        cluster = Cluster({0: shard}, {0: shard_info(shards=1)})
        limits = SearchLimits(merge_reserve=0.02, retrieve_share=0.4)
        self.core.set_answerer(
            Answerer(
                self.encoder,
                cluster,
                calibration_for=lambda _: AnswerCalibration(threshold=AnswerThreshold(0.0)),
                rule_for=lambda *_: None,
                limits=limits,
                metrics=metrics,
            )
        )


@pytest.fixture
def heads() -> FakeHeads:
    return FakeHeads({"intent": ("ask", "tell")}, {"names": (TokenSpan("word", 0, 2, 0.5),)})


@pytest.fixture
def shard() -> FakeSearcher:
    return FakeSearcher([reading("a")])


@pytest.fixture
def house(bundle: Bundle, heads: FakeHeads, shard: FakeSearcher) -> Iterator[House]:
    made = House(bundle, heads, shard)
    yield made
    made.encoder.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives heads more than the second in which a busy machine may not encode the question."""
    monkeypatch.setattr(questions, "_MAX_SECONDS", LONG)


@pytest.mark.usefixtures("patient")
async def test_heads_read_the_questions_own_encoding(house: House) -> None:
    got = await house.core.answer(WITH_HEADS, Deadline.after(LONG))
    intent, names = got.heads
    assert (intent.head_id, {each.label for each in intent.labels}) == ("intent", {"ask", "tell"})
    assert [each.text for each in names.entities] == ["Who is"]
    assert len(got.answers) == 1
    assert house.looks.results.count("miss") == 1, "one encoding for answer and heads"


async def test_a_question_that_names_no_heads_has_none_applied(
    house: House, heads: FakeHeads
) -> None:
    got = await house.core.answer(PLAIN, Deadline.after(LONG))
    assert (got.heads, heads.applied) == ((), [])


async def test_a_key_without_predict_has_no_heads_applied_to_its_questions(
    house: House, heads: FakeHeads
) -> None:
    """A text to apply heads to could be sent as a question else."""
    with called_by(Scope.ASK):
        with pytest.raises(PermissionDeniedError, match="lacks the scope 'predict'"):
            await house.core.answer(WITH_HEADS, Deadline.after(LONG))
        assert len((await house.core.answer(PLAIN, Deadline.after(LONG))).answers) == 1
    assert heads.applied == []


async def test_a_key_to_ask_and_predict_has_heads_applied_to_its_questions(house: House) -> None:
    with called_by(Scope.ASK, Scope.PREDICT):
        assert len((await house.core.answer(WITH_HEADS, Deadline.after(LONG))).heads) == 2


@pytest.mark.usefixtures("patient")
async def test_an_answer_from_before_has_heads_of_now(house: House, heads: FakeHeads) -> None:
    """Heads are swapped while the index stays as it is."""
    await house.core.answer(PLAIN, Deadline.after(LONG))
    first = await house.core.answer(WITH_HEADS, Deadline.after(LONG))
    heads.labels["intent"] = ("other", "labels")
    again = await house.core.answer(WITH_HEADS, Deadline.after(LONG))
    assert first.cached
    assert again.cached
    assert {each.label for each in first.heads[0].labels} == {"ask", "tell"}
    assert {each.label for each in again.heads[0].labels} == {"other", "labels"}
    assert (await house.core.answer(PLAIN, Deadline.after(LONG))).heads == ()


@pytest.mark.parametrize("case", ["unknown", "fails", "has a bug", "hangs"])
async def test_an_answer_is_never_lost_for_a_head(
    house: House, heads: FakeHeads, case: str
) -> None:
    if case == "unknown":
        heads.labels.clear()
        heads.spans.clear()
    heads.fails = {"fails": UnavailableError("gone"), "has a bug": ZeroDivisionError()}.get(case)
    heads.hangs = case == "hangs"
    deadline = Deadline.after(LONG)
    got = await house.core.answer(WITH_HEADS, deadline)
    assert len(got.answers) == 1
    assert not deadline.expired()
    assert [each.head_id for each in got.heads] == ["intent", "names"]
    assert all(each.failure for each in got.heads)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("case", ["cancelled", "failed"])
async def test_a_question_that_ends_ends_its_heads(
    house: House, heads: FakeHeads, shard: FakeSearcher, case: str
) -> None:
    heads.hangs = shard.hangs = True
    shard.fails_reading = UnavailableError("gone")
    call = asyncio.create_task(house.core.answer(WITH_HEADS, Deadline.after(LONG)))
    await asyncio.wait_for(heads.hanging.wait(), LONG)
    if case == "cancelled":
        call.cancel()
    else:
        shard.go_on.set()
    await asyncio.wait([call])
    await asyncio.wait_for(heads.released.wait(), LONG)
