"""How much of what somebody else wrote is quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.quoting import MAX_QUOTED, quoted, shortened, shown


@given(st.text(max_size=3 * MAX_QUOTED))
def test_a_quotation_is_short_and_on_one_line(text: str) -> None:
    said = shortened(text)
    assert len(said) <= 2 * MAX_QUOTED
    assert said.isprintable()


def test_what_is_short_is_quoted_as_it_is() -> None:
    assert quoted("größer als 1") == "'größer als 1'"
    assert shortened("two\nlines") == "two?lines"


def test_what_is_left_out_is_said() -> None:
    assert shortened("a" * 4_000_000) == "a" * MAX_QUOTED + "… (4000000 characters)"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://bucket/index", "s3://bucket/index"),
        ("sftp://me:secret@host/index", "sftp://host/index"),
        ("sftp://me:se@cret@host/in@dex", "sftp://host/in@dex"),
        ("plain/directory", "plain/directory"),
    ],
)
def test_a_url_is_shown_without_user_and_password(url: str, said: str) -> None:
    assert shown(url) == said
