"""Encodings on their way: bit for bit as float16, within a known bound as int8."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from winnow.convert import encoder as convert
from winnow.convert.encoder import format_of_message, states_of_message, states_to_message
from winnow.domain.encoder import EncoderInfo, StatesFormat
from winnow.domain.question import QuestionTokens
from winnow.errors import InvalidRequestError
from winnow.text.encoder import TextEncoding
from winnow.v1 import encoder_pb2

FLOAT16, INT8 = encoder_pb2.STATES_FORMAT_FLOAT16, encoder_pb2.STATES_FORMAT_INT8
states = arrays.arrays(
    np.float16,
    st.tuples(st.integers(1, 5), st.integers(1, 7)),
    elements=st.floats(-1000, 1000, width=16),
)


@given(states)
def test_half_precision_travels_bit_for_bit(values: NDArray[np.float16]) -> None:
    message = states_to_message(values, StatesFormat.FLOAT16)
    sent = encoder_pb2.TokenStates.FromString(message.SerializeToString())
    back = states_of_message(sent)
    assert back.dtype == np.float16
    assert back.shape == values.shape
    assert back.tobytes() == values.tobytes()


@given(states)
def test_bytes_are_off_by_half_a_step_of_their_token_at_most(values: NDArray[np.float16]) -> None:
    """And by the rounding to half precision, the smallest step of which is 2 ** -24."""
    message = states_to_message(values, StatesFormat.INT8)
    assert len(message.values) == values.size
    back = states_of_message(message).astype(np.float64)
    exact = values.astype(np.float64)
    step = np.abs(exact).max(axis=1, keepdims=True) / 127
    allowed = step / 2 * (1 + 1e-5) + np.abs(back) * 2.0**-11 + 2.0**-25
    assert (np.abs(back - exact) <= allowed).all()


@given(states)
def test_what_was_rounded_once_stays_as_it_is(values: NDArray[np.float16]) -> None:
    """A token's largest value, which sets the scale, is kept."""
    once = states_of_message(states_to_message(values, StatesFormat.INT8))
    largest = np.abs(values.astype(np.float32)).argmax(axis=1)
    rows = np.arange(len(values))
    np.testing.assert_allclose(
        once[rows, largest].astype(np.float32),
        values[rows, largest].astype(np.float32),
        rtol=2.0**-10,
        atol=2.0**-24,
    )


@pytest.mark.parametrize("kind", list(StatesFormat))
def test_an_encoding_survives_the_journey(kind: StatesFormat) -> None:
    vector = np.array([0.6, 0.8], np.float32)
    tokens = QuestionTokens(np.array([[1, -900]] * 3, np.int16), np.ones(3, np.float32))
    made = TextEncoding(vector, np.ones((3, 2), np.float16), 0.25, 0.5, tokens=tokens)
    sent = convert.encoding_to_message(made, kind).SerializeToString()
    back = convert.encoding_of_message(encoder_pb2.EncodeResponse.FromString(sent))
    assert back.vector.tobytes() == vector.tobytes()
    assert (back.queue, back.encode) == (0.25, 0.5)
    assert back.tokens is not None
    assert back.tokens.levels.tolist() == tokens.levels.tolist()
    assert back.tokens.weights.tolist() == [1, 1, 1]
    assert (back.states is None) == (kind is StatesFormat.NONE)
    if back.states is not None:
        assert (back.states == 1).all()


def test_what_an_encoder_says_of_itself_survives_the_journey() -> None:
    info = EncoderInfo(
        bundle="bundle",
        fingerprint="print",
        dimension=384,
        width=312,
        max_tokens=62,
        token_vectors="t",
    )
    assert astuple(convert.info_of_message(convert.info_to_message(info))) == astuple(info)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (encoder_pb2.TokenStates(tokens=1, width=1, values=b"ab"), r"states\.format"),
        (encoder_pb2.TokenStates(format=9, tokens=1, width=1), r"states\.format"),  # type: ignore[arg-type]
        (encoder_pb2.TokenStates(format=FLOAT16, tokens=0, width=4), "states: tokens and width"),
        (encoder_pb2.TokenStates(format=FLOAT16, tokens=1, width=0), "states: tokens and width"),
        (
            encoder_pb2.TokenStates(format=FLOAT16, tokens=1, width=2, values=b"abc"),
            "3 bytes, but expected 4",
        ),
        (encoder_pb2.TokenStates(format=INT8, tokens=1, width=2, values=b"ab"), r"states\.scales"),
        (
            encoder_pb2.TokenStates(
                format=FLOAT16, tokens=1, width=1, values=b"ab", scales=b"abcd"
            ),
            r"states\.scales",
        ),
        (
            encoder_pb2.TokenStates(format=FLOAT16, tokens=1, width=1, values=b"\x00\x7c"),
            "every value must be finite",
        ),
        (
            encoder_pb2.TokenStates(
                format=INT8,
                tokens=1,
                width=1,
                values=b"\x7f",
                scales=np.array([1e9], "<f4").tobytes(),
            ),
            "every value must be finite",
        ),
        (
            encoder_pb2.TokenStates(
                format=FLOAT16, tokens=2**32 - 1, width=2**32 - 1, values=b"ab"
            ),
            r"states\.values",
        ),
    ],
)
def test_states_that_are_none_are_a_field_violation(
    message: encoder_pb2.TokenStates, field: str
) -> None:
    with pytest.raises(InvalidRequestError, match=field):
        states_of_message(message)


def test_only_large_states_are_slow_to_convert() -> None:
    small, large = np.ones((66, 768), np.float16), np.ones((512, 768), np.float16)
    assert convert.is_cheap_to_convert(None, StatesFormat.INT8)
    assert convert.is_cheap_to_convert(small, StatesFormat.INT8)
    assert convert.is_cheap_to_convert(large, StatesFormat.FLOAT16)
    assert not convert.is_cheap_to_convert(large, StatesFormat.INT8)
    for states, quick in ((small, True), (large, False)):
        sent = convert.encoding_to_message(
            TextEncoding(np.ones(2, "f4"), states), StatesFormat.INT8
        )
        assert convert.is_message_cheap_to_convert(sent) is quick


def test_a_vector_that_is_none_is_a_field_violation() -> None:
    with pytest.raises(InvalidRequestError, match="vector: 3 bytes"):
        convert.encoding_of_message(encoder_pb2.EncodeResponse(vector=b"abc"))


def test_a_format_that_nobody_knows_is_a_field_violation() -> None:
    with pytest.raises(InvalidRequestError, match="states_format: 7 is not a known value"):
        format_of_message(7)
