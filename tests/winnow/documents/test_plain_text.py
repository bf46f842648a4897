"""Tests of the conversion of plain text."""

from shown_blocks import pages, shown

from winnow.documents.formats.plain_text import convert

WORDS = ["One", "Two", "Three", "Four"]


def test_the_form_of_lines_tells_headings_lists_and_drawings() -> None:
    text = """The Title
=========
First line
second line of a well-
known paragraph.

2.1.  Archive areas

There are:
  * main
  * contrib, which
    needs more
    - nested

NAME

  +-----+-----+
  |  a  |  b  |
  +-----+-----+
"""
    assert shown(convert(text.encode())) == [
        "# The Title",
        "First line second line of a well-known paragraph.",
        "## 2.1. Archive areas",
        "There are:",
        "- main",
        "- contrib, which needs more",
        "-- nested",
        "# NAME",
        "$ +-----+-----+\n  |  a  |  b  |\n  +-----+-----+",
    ]


def test_sentences_with_numbers_are_no_headings() -> None:
    text = "1. Do this first.\n\n2. Then that.\n\n3.5 million people live there, they say\nnow."
    assert shown(convert(text.encode()))[:2] == ["- 1. Do this first.", "- 2. Then that."]
    assert not any(line.startswith("#") for line in shown(convert(text.encode())))


def test_headers_and_footers_of_pages_are_left_out() -> None:
    page = "RFC 1  Host Software  April 1969\n\n{word} says that a line\ngoes on to {word}\n\nS. Crocker  [Page {n}]\n"
    document = convert(
        "\f".join(page.format(n=n, word=word) for n, word in enumerate(WORDS, 1)).encode()
    )
    assert shown(document) == [f"{word} says that a line goes on to {word}" for word in WORDS]
    assert pages(document) == [1, 2, 3, 4]


def test_a_paragraph_goes_on_after_a_page_break() -> None:
    document = convert(b"It begins on\n\fthe next page.\n\nAnother one.\n\f\n")
    assert shown(document) == ["It begins on the next page.", "Another one."]
    assert pages(document) == [1, 2]


def test_only_short_lines_are_entries_of_a_table_of_contents() -> None:
    """To look for dots takes quadratic time."""
    text = f"Introduction {'. ' * 30}4\n\nDots {'. ' * 20_000}4\n"
    assert [len(line) for line in shown(convert(text.encode()))] == [40_006]
