"""The sentence, list item, table row or list around a span."""

import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.text.sentences import sentence_spans
from winnow.text.surroundings import list_around, sentence_around

LEAD_IN = "The following priority levels are recognized."
ITEMS = (
    "required: Packages which are necessary. Removing them may break the system.\n"
    "important: Programs that one would expect to find on any Unix-like system.\n"
    "optional: The default."
)
PRIORITIES = f"Each package has one.\n\n{LEAD_IN}\n\n{ITEMS}\n\nPriority extra is deprecated."
MARKED = "Levels are checked. These are known:\n- low\n- high, which is\n  for errors\n"
EVEN = (
    "main: free software that is part of the distribution\n"
    "contrib: free software that needs other software\n"
    "non-free: software that is not free"
)
WRAPPED = (
    "An intermediate CA certificate file can\n"
    "be concatenated to the file. The order of\n"
    "the files is not relevant. Passwords are\n"
    "kept elsewhere."
)


def sentence(text: str, span: str) -> str:
    start = text.index(span)
    first, last = sentence_around(text, start, start + len(span))
    return text[first:last]


def whole_list(text: str, span: str) -> str | None:
    start = text.index(span)
    found = list_around(text, start, start + len(span))
    return None if found is None else text[slice(*found)]


@pytest.mark.parametrize(
    "marked",
    [
        "Dr. A. B. Smith of St. Mary's met Mr. Jones.| They talked.",
        "It was seen by J. A. Hobson.| He wrote.",
        "It costs $3.50 in the U.S. or more.| That is cheap.",
        "He left the U.S.| The war went on.",
        "He came at 5 p.m. on Jan. 5 and left.| Nobody saw it.",
        "See Fig. 3 and vol. 2, p. 17, e.g. the table.| It has all values.",
        "Send it to submit@bugs.debian.org.| A robot reads it.",
        "Version 2.4.1 is at https://example.org/a.b/c.html.| Get it there.",
        'He said "Stop!" and left.| "It is over."| She stayed.',
        "Smith et al. (2014) found it (see Sec. 4.2).[1]| Others did not.",
        "Acme Inc. was sold.| Its founder left.",
        "Is it so?| Yes!| It is.",
        "So it goes ... and on.| It ends...|  Then it began.",
        "The archive is signed.| dpkg does not check the signature.",
        "He was born c. 1500 in approx. ten days.| It rained.",
        "The end of it .| The next begins .",
        "World War I.| The next one was worse.",
        "1. Open the lid.| Close it.",
        "これは文です。|次の文です。",
        "Wörter enden.| Ängste auch.",
        "Look at README.md or ~/.config.| Then ask.",
    ],
)
def test_a_sentence_ends_where_people_end_it(marked: str) -> None:
    """Bars mark the ends. The beginning and the end of each sentence give the same sentence."""
    text, begin = marked.replace("|", ""), 0
    for part in marked.split("|"):
        first, last = begin + len(part) - len(part.lstrip()), begin + len(part)
        for start, end in ((first, first + 1), (last - 3, last)):
            assert sentence_around(text, start, end) == (first, last)
        begin = last


def test_periods_in_brackets_take_linear_time() -> None:
    """With quadratic time, this text took 4 s of processor time."""
    started = time.thread_time()
    text = "." + "[.]" * 7_000
    assert list(sentence_spans(text)) == [(0, len(text))]
    assert time.thread_time() - started < 1.0


@pytest.mark.parametrize("text", ["a\n" * 5_000, "A. " * 3_300, "- a\n" * 2_500, "a\n\n" * 3_300])
def test_the_work_for_a_span_is_limited(text: str) -> None:
    """A front finds sentences and lists on its event loop."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        sentence_around(text, 5_000, 5_001)
        list_around(text, 5_000, 5_001)
    finally:
        sys.setprofile(None)
    assert calls < 6_000


@pytest.mark.parametrize(("items", "is_whole"), [(40, True), (70, False)])
def test_a_list_of_many_lines_is_no_answer(items: int, is_whole: bool) -> None:
    """It is never cut."""
    text = "\n".join(f"- item {number}" for number in range(items))
    found = list_around(text, 2, 8)
    assert found == ((0, len(text)) if is_whole else None)


def test_a_span_of_two_sentences_has_both() -> None:
    assert sentence("It is. He was. She did.", "is. He") == "It is. He was."


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        (PRIORITIES, "one", "Each package has one."),
        (PRIORITIES, "Packages", ITEMS.split("\n", maxsplit=1)[0]),
        (PRIORITIES, "default", "optional: The default."),
        (f"It is.\n{'Many words. ' * 20}", "Many", "Many words."),
        (MARKED, "low", "- low"),
        (MARKED, "errors", "- high, which is\n  for errors"),
        (MARKED, "checked", "Levels are checked. These are known:"),
        ("name | size\nvim | 3 MB\n", "3 MB", "vim | 3 MB"),
        (EVEN, "non-free", "non-free: software that is not free"),
        (WRAPPED, "order", "The order of\nthe files is not relevant."),
        ("One paragraph. " * 30 + "\n" + "Another one. " * 30, "one. A", "Another one. Another one."),
    ],
    ids=[
        "paragraph", "item of two sentences", "last item", "long item", "marked item", "item of two lines",
        "lead-in", "table row", "items of like length", "hard-wrapped paragraph", "a paragraph per line",
    ],
)  # fmt: skip
def test_a_list_item_or_row_is_a_line_and_a_paragraph_has_sentences(
    text: str, span: str, expected: str
) -> None:
    assert sentence(text, span) == expected


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        (PRIORITIES, "default", f"{LEAD_IN}\n\n{ITEMS}"),
        (PRIORITIES.replace("following", "many"), "default", ITEMS),
        (MARKED, "low", MARKED.strip()),
        (PRIORITIES, "priority levels", f"{LEAD_IN}\n\n{ITEMS}"),
        (MARKED, "known", MARKED.strip()),
        (PRIORITIES, "break the system", None),
        (PRIORITIES, "one", None),
        (PRIORITIES, "deprecated", None),
        (WRAPPED, "order", None),
        ("One paragraph. " * 30 + "\n" + "Another one. " * 30, "Another", None),
        ("A list:\n\n" + "an item of a very long list\n" * 100, "item", None),
    ],
    ids=[
        "with lead-in", "no lead-in", "marked items", "in the lead-in", "in a lead-in above marked items",
        "in the middle of an item", "before the lead-in", "paragraph", "hard-wrapped paragraph",
        "a paragraph per line", "too long",
    ],
)  # fmt: skip
def test_a_list_has_its_lead_in(text: str, span: str, expected: str | None) -> None:
    assert whole_list(text, span) == expected


@given(st.text("ab.!? \n-1)", max_size=60), st.data())
def test_the_sentence_and_the_list_contain_the_span(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = sentence_around(text, start, end)
    found = list_around(text, start, end)
    if text[start:end].strip() == text[start:end] != "":
        assert first <= start <= end <= last
        assert found is None or found[0] <= start <= end <= found[1]
    assert 0 <= first <= last <= len(text)
