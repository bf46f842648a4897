"""Answers with long metadata: converted once, in a thread, for all who get them."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes import reading
from hypothesis import given
from hypothesis import strategies as st

from winnow.convert import answer as convert
from winnow.domain.answered import Answer, Answered, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.passage import Passage
from winnow.domain.question import ReadScope
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.answer.answer_cache import memory_bytes
from winnow.stateless.answer.servicer import pack
from winnow.stateless.http.json_text import message_to_json
from winnow.stateless.http.packed_answers import PackedReply
from winnow.v1 import answer_pb2

LONG = json.dumps({"years": list(range(1_000))})
COVERAGE = Coverage(
    (ShardCoverage(shard=0, passages=12, status=ShardStatus.SEARCHED, reason="", sequence=7),)
)
values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def answered(*metadata: str) -> Answered:
    made = [replace(reading("a"), passage=Passage("a", "", "some words", m)) for m in metadata]
    answers = tuple(Answer(each, 0, 0.5) for each in made)
    return Answered(
        answers=answers,
        has_answer=True,
        coverage=COVERAGE,
        timings=Timings(),
        passages_asked=10,
        passages_granted=10,
        passages_read=10,
        passages_needed=4,
        read_scope=ReadScope.GLOBAL,
        question_truncated=False,
    )


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    made = FairThreads(1, "packing")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("metadata", "packs"),
    [((), False), (("{}",) * 9, False), ((LONG,), True), ((LONG[:600],) * 2, True)],
)
def test_only_answers_that_take_long_are_packed(metadata: tuple[str, ...], packs: bool) -> None:
    assert convert.is_cheap_to_convert(answered(*metadata)) != packs


async def test_long_metadata_is_never_converted_on_the_event_loop_and_once_for_all(
    threads: FairThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[str] = []
    convert_passage = convert.passage_to_message

    def noted(passage: Passage) -> answer_pb2.Passage:
        where.append(threading.current_thread().name)
        return convert_passage(passage)

    monkeypatch.setattr(convert, "passage_to_message", noted)
    packed = await pack(threads, answered(LONG, LONG), "me")
    others = [replace(packed, cached=True, timings=Timings()) for _ in range(100)]
    replies = [convert.answered_to_bytes(each, f"{n}") for n, each in enumerate(others)]
    assert where == ["packing_0"] * 2
    read = [answer_pb2.AnswerResponse.FromString(reply) for reply in replies]
    assert [each.request_id for each in read] == [f"{n}" for n in range(100)]
    assert all(each.answers == read[0].answers and each.cached for each in read)


@given(st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=3))
def test_a_packed_reply_says_the_same_as_any_other(metadata: list[dict[str, object]]) -> None:
    plain = answered(*map(json.dumps, metadata))
    message = convert.answered_to_message(plain, "id")
    packed = replace(plain, packed=convert.pack_answers(plain))
    wire = convert.answered_to_bytes(packed, "id")
    assert answer_pb2.AnswerResponse.FromString(wire) == message
    assert convert.answered_to_bytes(plain, "id") == message.SerializeToString()
    assert packed.packed is not None
    text = PackedReply(convert.answered_to_message(packed, "id"), packed.packed).to_json()
    assert json.loads(text) == json.loads(message_to_json(message))


def test_the_json_of_an_answer_is_made_once() -> None:
    plain = answered(LONG)
    packed = convert.pack_answers(plain)
    rests = [convert.answered_to_message(replace(plain, packed=packed), name) for name in "ab"]
    texts = [PackedReply(rest, packed).to_json() for rest in rests]
    assert [json.loads(each)["requestId"] for each in texts] == ["a", "b"]
    assert json.loads(packed.json) == json.loads(texts[0])["answers"]


def test_what_is_packed_is_counted_where_answers_are_kept() -> None:
    plain = answered(LONG)
    packed = convert.pack_answers(plain)
    PackedReply(answer_pb2.AnswerResponse(), packed).to_json()
    more = memory_bytes(replace(plain, packed=packed)) - memory_bytes(plain)
    assert more >= len(packed.wire) + len(packed.json)


async def test_a_caller_that_gives_up_before_its_turn_has_nothing_converted(
    threads: FairThreads,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> bool:
        begun.set()
        go_on.wait()
        return False

    threads.add("other", hold)
    task = asyncio.create_task(pack(threads, answered(LONG), "me"))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    await asyncio.wait([task])
    go_on.set()
    assert task.cancelled()
