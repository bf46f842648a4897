"""Spans that cut nothing that belongs together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.text.snapping import snap


@pytest.mark.parametrize(
    ("text", "span", "whole"),
    [
        ("Mail to submit@bugs.debian.org now.", "@bugs.debian.org", "submit@bugs.debian.org"),
        ("Mail <a.b+c@x-y.example>, please", "b+c@x", "a.b+c@x-y.example"),
        ("See https://example.org/a_b?c=1#d.", "example.org", "https://example.org/a_b?c=1#d"),
        ("It is in /usr/share/doc, and", "share", "/usr/share/doc"),
        ("It is in ~/.config/winnow.toml.", "config", "~/.config/winnow.toml"),
        ("Use the option --foo-bar=7, or -v.", "foo", "--foo-bar=7"),
        ("Use the option --foo-bar=7, or -v.", "v", "-v"),
        ("Since version 2.0.1-3 it is", "2.0", "2.0.1-3"),
        ("Since version v1.2 it is", "1.2", "v1.2"),
        ("Install python3-dev first", "python3", "python3-dev"),
        ("Run apt-get update", "get", "apt-get"),
        ("Set MAX_OPEN_FILES to", "OPEN", "MAX_OPEN_FILES"),
        ("Set $HOME to", "HOME", "$HOME"),
        ("Read policy.pdf first.", "policy", "policy.pdf"),
        ("Include stdio.h first.", "stdio", "stdio.h"),
        ("Written in C++ by", "C", "C++"),
        ("It has 20 MB of memory", "20", "20 MB"),
        ("It has 20 MB of memory", "MB", "20 MB"),
        ("It runs at 3.2 GHz.", "3.2", "3.2 GHz"),
        ("It cost $5 million in all", "5", "$5 million"),
        ("It cost $5 million in all", "million", "$5 million"),
        ("About 2.5 billion people", "2.5", "2.5 billion"),
        ("It fell to -40 °C at night", "40", "-40 °C"),
        ("It is 45 % of all", "45", "45 %"),
        ('The song "Hello World" of', 'song "Hello', 'song "Hello World"'),
        (
            "the NFL (National Football League) won",
            "NFL (National",
            "NFL (National Football League)",
        ),
        ("the NFL (National Football League) won", "League) won", "(National Football League) won"),
    ],
)
def test_a_span_takes_in_what_it_would_cut(text: str, span: str, whole: str) -> None:
    start = text.index(span)
    first, last = snap(text, start, start + len(span))
    assert text[first:last] == whole


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("from 1990-1995 on", "1990"),
        ("the mid-1990s were", "1990s"),
        ("men and/or women", "and"),
        ("in 20 minutes", "20"),
        ("on 12 May 2014 it", "2014"),
        ("on 12 May 2014 it", "May"),
        ("He left the U.S. The end.", "U.S"),
        ("It ended.Then it", "ended"),
        ('The song "Hello World" of', "Hello World"),
        ("born (12 May 1914 in Paris) and", "Paris"),
        ("the Paris-based firm", "Paris"),
        ("at 5 p.m. on", "5"),
        ("Winnow's answers", "Winnow"),
        ("a 3.5-inch disk", "3.5"),
    ],
)
def test_other_words_stay_apart(text: str, span: str) -> None:
    start = text.index(span)
    assert snap(text, start, start + len(span)) == (start, start + len(span))


def test_a_span_with_a_very_long_word_is_not_extended() -> None:
    """A word of more than 100 characters is one token; some expressions take quadratic time."""
    assert snap(f"{'a' * 501}@example.org", 0, 501) == (0, 501)
    assert snap(f"{'a' * 100}@example.org", 0, 100) == (0, 112)


@given(st.text("""ab1 .-/@:$"'()_+%\nMB""", max_size=60), st.data())
def test_snapping_never_shrinks_and_is_settled_at_once(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = snap(text, start, end)
    assert 0 <= first <= start <= end <= last <= len(text)
    assert snap(text, first, last) == (first, last)
