"""Messages and domain values are the same thing twice."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.convert import answer, shard
from winnow.domain.answered import ShardTimings
from winnow.domain.coverage import ShardStatus
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import EncodedQuestion, ReadScope, Retriever
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.errors import InvalidRequestError
from winnow.searcher import Read, Retrieved
from winnow.v1 import answer_pb2, shard_pb2

words = st.text(st.characters(codec="utf-8"), max_size=20)
single = st.floats(width=32, allow_nan=False)
readings = st.builds(
    Reading,
    st.builds(Passage, words, words, words, words),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.floats(allow_nan=False),
    single,
    single,
    single,
    single,
)


@given(st.lists(readings, max_size=4))
def test_readings_survive_the_journey(found: list[Reading]) -> None:
    read = Read(tuple(found), ShardTimings())
    assert shard.read_of_message(shard.read_to_message(read)).readings == read.readings
    assert shard.search_of_message(shard.search_to_message(read)).readings == read.readings


@given(
    st.lists(
        st.builds(Hit, st.integers(0, 2**40), words, single, single, st.just("rows")), max_size=5
    ),
    st.lists(single, max_size=9),
)
def test_hits_survive_the_journey(hits: list[Hit], near: list[float]) -> None:
    retrieved = Retrieved(tuple(hits), tuple(near), ShardTimings(), idle=3)
    back = shard.retrieved_of_message(shard.retrieved_to_message(retrieved))
    assert back == retrieved


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_vectors_travel_bit_for_bit(values: list[float]) -> None:
    vector = np.array(values, dtype=np.float32)
    question = EncodedQuestion("q", (1, 2), vector, "f")
    back = shard.question_of_message(shard.question_to_message(question))
    assert back.vector.tobytes() == vector.tobytes()
    assert (back.text, back.token_ids, back.bundle_fingerprint) == ("q", (1, 2), "f")


@pytest.mark.parametrize("data", [b"abc", np.array([np.nan], "<f4").tobytes()])
def test_a_vector_that_is_none_is_a_field_violation(data: bytes) -> None:
    with pytest.raises(InvalidRequestError, match=r"question\.vector"):
        shard.question_of_message(shard_pb2.EncodedQuestion(vector=data))


def test_shard_info_survives_the_journey() -> None:
    info = ShardInfo(1, 3, "index", 42, 384, "bundle", "print", "rows", 120, 0.0125, 7)
    back = shard.info_of_message(shard.info_to_message(info))
    assert astuple(back) == astuple(info)


def test_a_shard_that_is_busier_is_the_same_shard() -> None:
    info = ShardInfo(1, 3, "index", 42, 384, "bundle", "print")
    assert replace(info, seconds_per_read=0.5, reads_in_hand=9) == info
    assert replace(info, generation="other") != info


@pytest.mark.parametrize("scope", list(ReadScope))
def test_read_scopes_survive_the_journey(scope: ReadScope) -> None:
    assert answer.read_scope(answer.read_scope_message(scope)) is scope


def test_every_status_of_a_shard_can_be_said() -> None:
    sent = {answer._STATUSES[status] for status in ShardStatus}
    assert sent == set(answer_pb2.ShardCoverage.Status.values()) - {0}


def test_an_unknown_choice_is_a_field_violation() -> None:
    with pytest.raises(InvalidRequestError, match="read_scope: 9"):
        answer.read_scope(9)
    with pytest.raises(InvalidRequestError, match="retriever: 9"):
        answer.retriever(9)


@pytest.mark.parametrize("chosen", [None, *Retriever])
def test_a_retriever_survives_the_journey(chosen: Retriever | None) -> None:
    assert answer.retriever(answer.retriever_message(chosen)) is chosen
