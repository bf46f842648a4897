"""States as they are stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from winnow.errors import ArtefactError
from winnow.reading.passage_states import concatenate, packed_size, quantise, unpack

WIDTH = 5
values = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.just(WIDTH)),
    elements=st.floats(-64, 64, width=32),
)


@given(values)
def test_packed_states_are_unpacked_bit_for_bit(states: np.ndarray) -> None:
    made = quantise(states)
    data = made.packed()
    found = unpack(data, WIDTH)
    assert len(data) == packed_size(len(states), WIDTH)
    assert np.array_equal(found.levels, made.levels)
    assert np.array_equal(found.scales, made.scales)


@given(values)
def test_no_value_moves_by_more_than_half_a_level(states: np.ndarray) -> None:
    made = quantise(states)
    back = made.levels.astype(np.float32) * made.scales[:, None]
    assert (np.abs(back - states) <= made.scales[:, None] * 0.5001).all()


@given(values, values)
def test_a_token_is_rounded_by_itself(first: np.ndarray, second: np.ndarray) -> None:
    """A token's neighbours do not matter: windows and whole passages have the same states."""
    together = quantise(np.concatenate([first, second]))
    apart = concatenate([quantise(first), quantise(second)])
    assert np.array_equal(together.levels, apart.levels)
    assert np.array_equal(together.scales, apart.scales)


@given(values.filter(lambda states: len(states) > 0), st.data())
def test_any_altered_bit_is_found(states: np.ndarray, data: st.DataObject) -> None:
    packed = bytearray(quantise(states).packed())
    place = data.draw(st.integers(0, len(packed) - 1))
    packed[place] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ArtefactError, match="checksum"):
        unpack(bytes(packed), WIDTH)
