"""Writes survive the way to a shard and back; nonsense is a field violation."""

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_writes import delete, encoded, put

from winnow.convert import shard_feed as convert
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import InvalidRequestError, UnavailableError
from winnow.v1 import feed_pb2, shard_feed_pb2


def travelled(write: Write) -> Write:
    message = convert.writes_to_messages([write])[0]
    sent = shard_feed_pb2.EncodedWrite.FromString(message.SerializeToString())
    return convert.writes_of_messages([sent])[0]


@pytest.mark.parametrize(
    "write",
    [
        put("a", "né 🎻 cafe\u0301"),
        put("a", version=0),
        Write("b", 2**63 - 1, encoded("b", "one", '{"year": 2010}')),
        Write(
            "d",
            None,
            replace(encoded("d"), token_levels=b"\x80\x7f", token_vectors_fingerprint="t"),
        ),
        delete("c"),
        delete("c", 7),
    ],
)
def test_a_write_survives_the_way(write: Write) -> None:
    assert travelled(write) == write


def test_what_became_of_writes_survives_the_way() -> None:
    written = [Written(outcome, n, "log") for n, outcome in enumerate(Outcome)]
    message = convert.written_to_message(written)
    back = convert.written_of_message(message, 3)
    assert (back, {each.log_id for each in back}) == (written, {"log"})
    with pytest.raises(UnavailableError, match="reported 3 outcomes for 4 writes"):
        convert.written_of_message(message, 4)
    message.written[1].outcome = feed_pb2.WRITE_OUTCOME_UNSPECIFIED
    with pytest.raises(UnavailableError, match="unknown outcome"):
        convert.written_of_message(message, 3)


def test_counts_survive_the_way() -> None:
    ids, by = np.array([3, 2**32 - 1], np.uint32), np.array([-5, 2**31 - 1], np.int32)
    changes = WordChanges(sequence=17, ids=ids, by=by, passages=-2, tokens=-30)
    built = WordCounts(np.array([0, 2**32 - 1], np.uint32), 70, 9)
    message = convert.counts_to_message(changes, built)
    found = convert.changes_of_message(message)
    assert (found.sequence, found.passages, found.tokens) == (17, -2, -30)
    assert found.ids.tolist() == ids.tolist()
    assert found.by.tolist() == by.tolist()
    counted = convert.built_of_message(message)
    assert (counted.passages.tolist(), counted.tokens, counted.total) == ([0, 2**32 - 1], 70, 9)
    assert not convert.counts_to_message(changes, None).built
    message.changes = b"123"
    with pytest.raises(UnavailableError, match="another version"):
        convert.changes_of_message(message)
    message.built = b"123"
    with pytest.raises(UnavailableError, match="another version"):
        convert.built_of_message(message)


def u32(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def f32(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


@pytest.mark.parametrize(
    ("altered", "said"),
    [
        ({"text": " "}, r"put\.text: is empty"),
        ({"text": "x" * 10_001}, r"put\.text: has 10001 characters, at most 10000"),
        ({"title": "x" * 1_001}, r"put\.title: has 1001 characters"),
        ({"metadata": "[1]"}, "metadata is a list, expected an object"),
        ({"metadata": "{"}, "metadata is not JSON"),
        ({"metadata": "[" * 100_000}, "metadata is not JSON"),
        ({"metadata": '{"a": NaN}'}, "metadata"),
        ({"metadata": '{"a": 1e999}'}, r"put\.metadata: 'a' has a number"),
        ({"metadata": '{"a": "\\ud800"}'}, r"put\.metadata: 'a' has a lone surrogate"),
        ({"title_tokens": b"123"}, r"put\.title_tokens: 3 bytes is not a multiple of 4"),
        ({"text_tokens": b"12345"}, r"put\.text_tokens: 5 bytes"),
        ({"text_offsets": u32(0, 4)}, r"put\.text_offsets: 2 values for 2 tokens"),
        ({"text_offsets": u32(0, 4, 5, 11)}, "are beyond the text"),
        ({"text_offsets": u32(5, 10, 0, 4)}, "do not ascend"),
        ({"text_offsets": u32(4, 0, 5, 10)}, "do not ascend"),
        (
            {"vector": b"123"},
            r"put\.vector: 3 bytes is not a multiple of 4: expected float32 values",
        ),
        ({"vector": b""}, "its norm is 0"),
        ({"vector": f32(1, 1)}, "its norm is 1.41"),
        ({"vector": f32(float("nan"), 1)}, "its norm is nan"),
        ({"vector": f32(float("inf"), 1)}, "its norm is inf"),
        ({"vector": f32(3e38, 3e38)}, "its norm is"),
    ],
)
def test_a_put_that_no_passage_makes_is_refused(altered: dict[str, Any], said: str) -> None:
    message = convert.writes_to_messages([put("a", "some words")])[0]
    for name, value in altered.items():
        setattr(message.put, name, value)
    with pytest.raises(InvalidRequestError, match=said) as caught:
        list(convert.writes_of_messages([message]))
    assert caught.value.violations[0].field.startswith("writes[0].put")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (shard_feed_pb2.EncodedWrite(id="a"), "neither a put nor a deletion"),
        (shard_feed_pb2.EncodedWrite(id="a", delete=False), "neither a put nor a deletion"),
        (shard_feed_pb2.EncodedWrite(delete=True), r"writes\[0\]\.id: is empty"),
        (shard_feed_pb2.EncodedWrite(id="a", version=2**63, delete=True), "is more than"),
        (
            shard_feed_pb2.EncodedWrite(put=shard_feed_pb2.EncodedPassage(text="a")),
            r"put\.id: is empty",
        ),
    ],
)
def test_a_message_that_is_no_write_is_refused(
    message: shard_feed_pb2.EncodedWrite, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        list(convert.writes_of_messages([message]))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_write_or_are_refused(data: bytes) -> None:
    try:
        message = shard_feed_pb2.EncodedWrite.FromString(data)
    except Exception:  # noqa: BLE001 (the intake of the server answers this)
        return
    try:
        [found] = convert.writes_of_messages([message])
    except InvalidRequestError:
        return
    assert found.id


@given(
    st.text(max_size=30),
    st.text(max_size=30),
    st.text(max_size=30),
    st.binary(max_size=24),
    st.binary(max_size=24),
    st.binary(max_size=48),
    st.binary(max_size=24),
)
def test_a_put_of_nonsense_is_a_write_or_refused(
    identifier: str, text: str, metadata: str, title: bytes, ids: bytes, at: bytes, vector: bytes
) -> None:
    made = shard_feed_pb2.EncodedPassage(
        text=text,
        metadata=metadata,
        title_tokens=title,
        text_tokens=ids,
        text_offsets=at,
        vector=vector,
    )
    with contextlib.suppress(InvalidRequestError):
        list(convert.writes_of_messages([shard_feed_pb2.EncodedWrite(id=identifier, put=made)]))
