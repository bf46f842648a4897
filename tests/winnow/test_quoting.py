"""How much of what somebody else wrote is quoted."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.quoting import MOST, quoted, shortened


@given(st.text(max_size=3 * MOST))
def test_a_quotation_is_short_and_on_one_line(text: str) -> None:
    said = shortened(text)
    assert len(said) <= 2 * MOST
    assert said.isprintable()


def test_what_is_short_is_quoted_as_it_is() -> None:
    assert quoted("größer als 1") == "'größer als 1'"
    assert shortened("two\nlines") == "two?lines"


def test_what_is_left_out_is_said() -> None:
    assert shortened("a" * 4_000_000) == "a" * MOST + "… (4000000 characters)"
