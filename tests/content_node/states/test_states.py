"""States as they are stored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from winnow.errors import ArtefactError
from winnow.reading.four_bits import GROUP, decode, encode, round_levels
from winnow.reading.passage_states import concatenate, packed_size, quantise, unpack
from winnow.reading.states_kind import CHECKSUM_BYTES, KINDS, READER_STATES, StatesKind

WIDTH = 5
SHARES = (-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127)
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
def test_no_value_moves_by_more_than_half_a_step_of_its_group(states: np.ndarray) -> None:
    made = quantise(states)
    back = made.levels.astype(np.float32) * made.scales[:, None]
    # half of the largest step between codes, and half a level for each rounding to 8 bits
    largest = np.abs(made.levels).max(1, initial=0)[:, None].astype(np.float32)
    allowed = largest * (127 - 88) / 254 + 1.001
    assert (np.abs(back - states) <= made.scales[:, None] * allowed).all()


levels = arrays.arrays(
    np.int8,
    st.tuples(st.integers(0, 4), st.integers(1, 2 * GROUP + 1)),
    elements=st.integers(-127, 127),
)


@given(levels)
def test_encoded_levels_are_decoded_to_rounded_ones(drawn: np.ndarray) -> None:
    rounded = round_levels(drawn)
    assert rounded.shape == drawn.shape
    assert np.array_equal(decode(*encode(drawn), drawn.shape[1]), rounded)


@given(levels)
def test_rounding_levels_again_changes_nothing(drawn: np.ndarray) -> None:
    """So states of 8 bits can be converted at any time, and a merge can copy the result."""
    rounded = round_levels(drawn)
    assert np.array_equal(round_levels(rounded), rounded)
    for first, second in zip(encode(rounded), encode(drawn), strict=True):
        assert np.array_equal(first, second)


def test_every_level_of_every_group_is_rounded_to_the_nearest_code() -> None:
    """Exhaustively: a group with each maximum and each smaller level."""
    for maximum in range(128):
        own = np.arange(-maximum, maximum + 1, dtype=np.int8)[:, None]
        pairs = np.concatenate([own, np.full_like(own, maximum)], axis=1)
        rounded = round_levels(pairs)
        assert np.array_equal(decode(*encode(pairs), 2), rounded)
        assert (rounded[:, 1] == maximum).all()
        assert (rounded[[0, maximum, -1], 0] == (-maximum, 0, maximum)).all()
        shares = np.rint(maximum * np.array(SHARES) / 127)
        nearest = np.abs(shares[None, :] - own).min(axis=1)
        assert (np.abs(rounded[:, 0].astype(int) - own[:, 0]) == nearest).all()


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


@pytest.mark.parametrize("kind", [*KINDS, READER_STATES.in_format(2)])
@pytest.mark.parametrize("size", range(CHECKSUM_BYTES))
def test_zeros_that_are_shorter_than_a_checksum_are_damaged(kind: StatesKind, size: int) -> None:
    with pytest.raises(ArtefactError, match=f"they have {size} bytes"):
        kind.check(bytes(size), WIDTH)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_token_that_is_not_finite_has_the_scale_nan_and_changes_no_other_token(
    value: float,
) -> None:
    states = np.linspace(-2, 2, 3 * WIDTH, dtype=np.float32).reshape(3, WIDTH)
    expected = quantise(states)
    states[1, 2] = value
    made = quantise(states)
    assert np.isnan(made.scales).tolist() == [False, True, False]
    assert made.levels[1].tolist() == [0] * WIDTH
    for row in (0, 2):
        assert np.array_equal(made.levels[row], expected.levels[row])
        assert made.scales[row] == expected.scales[row]
    assert made.scales.dtype == np.float32
