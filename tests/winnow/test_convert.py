"""Messages and domain values are the same thing twice."""

import json
from dataclasses import astuple, replace

import numpy as np
import pytest
from fakes import shard_info
from hypothesis import given
from hypothesis import strategies as st

from winnow.convert import answer, shard
from winnow.convert.by_name import value_of_message
from winnow.domain.answer_size import AnswerSize
from winnow.domain.answered import Answer, ShardTimings, Timings
from winnow.domain.coverage import ShardCoverage, ShardStatus
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import (
    AnswerRequest,
    EncodedQuestion,
    PartialResults,
    QuestionTokens,
    ReadScope,
    Retriever,
)
from winnow.domain.reading import Reading
from winnow.domain.shard import MAX_SHARDS, ShardInfo
from winnow.domain.shard_call import CallKind, CallOutcome, Interval, ReadTime, ShardCall
from winnow.domain.source import Source, source_of
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError, UnavailableError
from winnow.searcher import Read, Retrieved
from winnow.v1 import answer_pb2, shard_pb2

words = st.text(st.characters(codec="utf-8"), max_size=20)
single = st.floats(width=32, allow_nan=False)
readings = st.builds(
    Reading,
    passage=st.builds(Passage, words, words, words, words),
    start=st.integers(0, 1000),
    end=st.integers(0, 1000),
    score=st.floats(allow_nan=False),
    relevance=single,
    span_score=single,
    distance=single,
    hybrid_distance=single,
)


@given(st.lists(readings, max_size=4))
def test_readings_survive_the_journey(found: list[Reading]) -> None:
    read = Read(tuple(found), ShardTimings())
    assert shard.read_of_message(shard.read_to_message(read)).readings == read.readings
    assert (
        shard.read_of_search_response(shard.read_to_search_response(read)).readings == read.readings
    )


def test_what_a_node_says_of_its_time_survives_the_journey() -> None:
    reading = Reading(
        passage=Passage("a", "", "b"),
        start=0,
        end=1,
        score=0,
        relevance=0,
        span_score=0,
        distance=0,
        hybrid_distance=0,
        span=Interval(0.25, 0.5),
    )
    spent = ShardTimings(retrieve=0.125, without_tokens=3)
    read = Read((reading,), spent, retrieved=Interval(0.0625, 0.125), passages=0)
    back = shard.read_of_search_response(shard.read_to_search_response(read))
    assert (back.retrieved, back.readings[0].span) == (read.retrieved, reading.span)
    assert back.passages == 0
    retrieved = Retrieved((), (), spent, retrieved=Interval(0.0625, 0.125), passages=41)
    assert shard.retrieved_of_message(shard.retrieved_to_message(retrieved)) == retrieved


def test_the_log_that_a_reply_counts_in_survives_the_journey() -> None:
    read = Read((), ShardTimings(), sequence=7, log_id="log")
    assert shard.read_of_search_response(shard.read_to_search_response(read)) == read
    retrieved = Retrieved((), (), ShardTimings(), sequence=7, log_id="log")
    assert shard.retrieved_of_message(shard.retrieved_to_message(retrieved)) == retrieved


@pytest.mark.parametrize(
    ("metadata", "document"),
    [
        ({"document": "a.pdf", "page": 4, "heading": "A › B", "start": 1, "end": 5.0}, "a.pdf"),  # noqa: RUF001
        ({"document": "a.pdf", "page": "four", "heading": 7, "start": -1}, "a.pdf"),
        ({"document": ["a.pdf"], "page": 4}, ""),
        ({}, ""),
    ],
)
def test_an_answer_has_its_source_whatever_is_in_the_metadata(
    metadata: dict[str, object], document: str
) -> None:
    reading = Reading(
        passage=Passage("a", "", "It is. So it was.", json.dumps(metadata)),
        start=7,
        end=9,
        score=0,
        relevance=0,
        span_score=0,
        distance=0,
        hybrid_distance=0,
    )
    found = Answer(reading, 0, 0.5, sentence=(7, 17), size=AnswerSize.SENTENCE)
    message = answer._answer_to_message(found)
    assert message.HasField("source") == bool(document)
    assert message.source.document == document
    assert (message.text, message.shown_text) == ("So", "So it was.")
    assert (message.sentence_start, message.sentence_end) == (7, 17)
    assert message.size == answer_pb2.ANSWER_SIZE_SENTENCE
    assert not message.HasField("sentence_confidence")
    got = value_of_message(Source, message.source, headings=tuple(message.source.headings))
    assert not document or got == source_of(metadata)


@given(
    st.lists(
        st.builds(
            Hit,
            row=st.integers(0, 2**40),
            passage_id=words,
            distance=single,
            hybrid_distance=single,
            generation=st.just("rows"),
        ),
        max_size=5,
    ),
    st.lists(single, max_size=9),
)
def test_hits_survive_the_journey(hits: list[Hit], near: list[float]) -> None:
    retrieved = Retrieved(tuple(hits), tuple(near), ShardTimings(), idle_readers=3)
    back = shard.retrieved_of_message(shard.retrieved_to_message(retrieved))
    assert back == retrieved


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_vectors_travel_bit_for_bit(values: list[float]) -> None:
    vector = np.array(values, dtype=np.float32)
    question = EncodedQuestion(text="q", token_ids=(1, 2), vector=vector, bundle_fingerprint="f")
    back = shard.question_of_message(shard.question_to_message(question))
    assert back.vector.tobytes() == vector.tobytes()
    assert (back.text, back.token_ids, back.bundle_fingerprint) == ("q", (1, 2), "f")


def test_token_vectors_survive_the_journey() -> None:
    tokens = QuestionTokens(
        np.array([[1, -2], [3, 4096]], np.int16), np.array([0.5, 0.1], np.float32)
    )
    vector = np.ones(2, np.float32)
    question = EncodedQuestion(
        text="q", token_ids=(1,), vector=vector, bundle_fingerprint="f", tokens=tokens
    )
    back = shard.question_of_message(shard.question_to_message(question)).tokens
    assert back is not None
    assert back.levels.tolist() == tokens.levels.tolist()
    assert back.weights.tobytes() == tokens.weights.tobytes()


@pytest.mark.parametrize(
    ("levels", "weights"),
    [(b"abc", [1.0]), (b"", [1.0]), (b"abcd", []), (b"ab", [-1.0]), (b"ab", [np.nan])],
)
def test_invalid_token_vectors_are_a_field_violation(levels: bytes, weights: list[float]) -> None:
    message = shard_pb2.EncodedQuestion(
        vector=np.ones(2, "<f4").tobytes(), token_levels=levels, token_weights=weights
    )
    with pytest.raises(InvalidRequestError, match=r"question\.token_"):
        shard.question_of_message(message)


@pytest.mark.parametrize("data", [b"abc", np.array([np.nan], "<f4").tobytes()])
def test_a_vector_that_is_none_is_a_field_violation(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match=r"question\.vector"):
        shard.question_of_message(shard_pb2.EncodedQuestion(vector=data))


def test_shard_info_survives_the_journey() -> None:
    info = ShardInfo(
        shard=1,
        shards=3,
        index_id="index",
        passages=42,
        dimension=384,
        bundle_name="bundle",
        bundle_fingerprint="print",
        generation="rows",
        index_passages=120,
        sequence=9,
        log_id="log",
        fields=("lang",),
        seconds_per_read=0.0125,
        reads_in_hand=7,
    )
    back = shard.info_of_message(shard.info_to_message(info))
    assert astuple(back) == astuple(info)


def test_a_shard_that_is_busier_is_the_same_shard() -> None:
    info = shard_info()
    assert replace(info, seconds_per_read=0.5, reads_in_hand=9) == info
    assert replace(info, generation="other") != info


def test_every_status_of_a_shard_can_be_said() -> None:
    sent = {answer._STATUSES[status] for status in ShardStatus}
    assert sent == set(answer_pb2.ShardCoverage.Status.values()) - {0}


@pytest.mark.parametrize("retriever", [None, *Retriever])
@pytest.mark.parametrize("scope", [None, *ReadScope])
def test_the_choices_of_a_request_survive_the_journey(
    retriever: Retriever | None, scope: ReadScope | None
) -> None:
    message = answer_pb2.AnswerRequest(
        question="Who?",
        retriever=answer.retriever_message(retriever),
        read_scope=answer.read_scope_message(scope),
    )
    expected = AnswerRequest(question="Who?", retriever=retriever, read_scope=scope)
    assert answer.request_of_message(message) == expected


def test_what_a_request_gives_is_told_from_what_it_leaves_out() -> None:
    bare = answer_pb2.AnswerRequest()
    assert answer.request_of_message(bare) == AnswerRequest(question="")
    zeros = answer_pb2.AnswerRequest(
        passages_to_read=0,
        answers=0,
        max_answer_tokens=0,
        max_loss=0,
        partial_results=answer_pb2.PARTIAL_RESULTS_FORBID,
        min_coverage=0,
        min_wait_factor=0,
        max_wait_factor=0,
    )
    expected = AnswerRequest(
        question="",
        passages_to_read=0,
        answers=0,
        read_scope=None,
        retriever=None,
        max_answer_tokens=0,
        max_loss=0.0,
        partial_results=PartialResults.FORBID,
        min_coverage=0.0,
        min_wait_factor=0.0,
        max_wait_factor=0.0,
    )
    assert answer.request_of_message(zeros) == expected
    assert answer.request_of_message(answer_pb2.AnswerRequest(fresh=True)).fresh


def test_positions_in_logs_survive_the_journey_and_name_their_shards() -> None:
    message = answer_pb2.AnswerRequest(
        after=[answer_pb2.Position(shard=0, sequence=7), answer_pb2.Position(shard=2)]
    )
    assert answer.request_of_message(message).after == (Position(0, 7), Position(2, 0))
    message.after.add(sequence=3)
    with pytest.raises(InvalidRequestError, match="after: a position has no shard"):
        answer.request_of_message(message)


@pytest.mark.parametrize("sequence", [None, 0, 7])
def test_the_last_write_that_a_shard_knew_of_is_told_from_none(sequence: int | None) -> None:
    part = ShardCoverage(shard=0, passages=10, status=ShardStatus.SEARCHED, sequence=sequence)
    sent = answer._shard_coverage_to_message(part)
    assert (sent.sequence if sent.HasField("sequence") else None) == sequence


@pytest.mark.parametrize(
    "field", ["max_loss", "min_coverage", "min_wait_factor", "max_wait_factor"]
)
def test_single_precision_on_the_wire_changes_no_number(field: str) -> None:
    message = answer_pb2.AnswerRequest(**{field: 0.55})  # type: ignore[arg-type]
    assert getattr(answer.request_of_message(message), field) == 0.55


def test_every_unknown_choice_is_a_field_violation() -> None:
    message = answer_pb2.AnswerRequest(read_scope=9, retriever=9, partial_results=9)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidRequestError, match="read_scope: 9 is none of GLOBAL, PER_SHARD"
    ) as caught:
        answer.request_of_message(message)
    fields = [violation.field for violation in caught.value.violations]
    assert fields == ["read_scope", "retriever", "partial_results"]


@pytest.mark.parametrize("kind", list(CallKind))
@pytest.mark.parametrize("outcome", list(CallOutcome))
def test_callers_are_told_every_call_in_milliseconds(kind: CallKind, outcome: CallOutcome) -> None:
    reads = (ReadTime("a", Interval(0.5, 0.25)),)
    call = ShardCall(
        shard=0,
        kind=kind,
        outcome=outcome,
        span=Interval(0.125, 2.0),
        retrieved=Interval(0.25, 0.0625),
        reads=reads,
    )
    sent = answer._timings_to_message(Timings(merge_start=3.0, calls=(call,)))
    told = sent.calls[0]
    assert (sent.merge_start_ms, told.HasField("shard"), told.shard) == (3000, True, 0)
    assert answer_pb2.ShardCall.Kind.Name(told.kind) == f"KIND_{kind.name}"
    assert answer_pb2.ShardCall.Outcome.Name(told.outcome) == f"OUTCOME_{outcome.name}"
    assert (told.start_ms, told.ms) == (125, 2000)
    assert (told.retrieve_start_ms, told.retrieve_ms) == (250, 62.5)
    assert [(r.passage_id, r.start_ms, r.ms) for r in told.reads] == [("a", 500, 250)]


def test_a_report_of_more_shards_than_an_index_has_is_refused() -> None:
    many = [shard_pb2.GetShardInfoResponse()] * (2 * MAX_SHARDS + 1)
    with pytest.raises(UnavailableError, match="reports 8,193 shards") as caught:
        shard.report_of_message(shard_pb2.ListShardsResponse(shards=many), "node:1")
    assert caught.value.public == "a node sent an invalid reply"


@pytest.mark.parametrize("empty", [shard_pb2.ShardResult(), shard_pb2.ShardResult(error=b"")])
def test_a_shard_without_a_result_may_be_asked_elsewhere(empty: shard_pb2.ShardResult) -> None:
    error = shard.result_of_message(empty, "node:1")
    assert isinstance(error, UnavailableError)
    assert error.public == "a node sent an invalid reply"
