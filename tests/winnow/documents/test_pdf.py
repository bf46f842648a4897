"""Tests of the conversion of PDF files."""

from pathlib import Path

import pytest
from document_files import Typed, pdf
from shown_blocks import pages, shown

from winnow.documents.failures import ConversionError, FailureReason
from winnow.documents.formats.pdf import convert


def lines(text: str, y: float, x: float = 50, **kwargs: object) -> list[Typed]:
    """Returns the lines of a paragraph, 12 points apart."""
    return [
        Typed(line, x, y + 12 * n, **kwargs)  # type: ignore[arg-type]
        for n, line in enumerate(text.split("\n"))
    ]


PROSE = "Each package must have a priority value, which is set in\nthe metadata of the archive."


def test_headings_are_larger_or_bold_and_paragraphs_have_a_distance() -> None:
    document = convert(
        pdf(
            [
                [
                    Typed("The Archive", 50, 40, 20),
                    Typed("1.1 Areas", 50, 80, 14),
                    *lines(PROSE, 110),
                    *lines("Another paragraph begins after some space, and its end\nis here.", 142),
                    Typed("Details", 50, 180, 10, "F2"),
                    *lines(PROSE, 200),
                ]
            ]
        )
    )
    assert document.title == "The Archive"
    assert shown(document) == [
        "# The Archive",
        "## 1.1 Areas",
        PROSE.replace("\n", " "),
        "Another paragraph begins after some space, and its end is here.",
        "### Details",
        PROSE.replace("\n", " "),
    ]
    assert set(pages(document)) == {1}


def test_the_outline_gives_levels_and_the_metadata_the_title() -> None:
    first = [Typed("Chapter 2. Areas", 50, 40, 12), *lines(PROSE, 80)]
    data = pdf([first, lines(PROSE, 80)], title="Policy", outline=[("Areas", 0), ("Nowhere", 1)])
    document = convert(data)
    assert document.title == "Policy"
    assert shown(document)[0] == "# Chapter 2. Areas"


def test_headers_footers_and_contents_are_left_out() -> None:
    words = ["one", "two", "three", "four", "five"]
    contents = [
        Typed(f"Section {word} . . . . . . . . {n}", 50, 100 + 12 * n)
        for n, word in enumerate(words)
    ]
    bodies = [
        [
            Typed("The Debian Policy", 50, 20),
            *lines(f"Text of page {word} begins here and goes on in the\nnext line to {word}.", 80),
            Typed(f"{n}. Section {word}   {n + 10}", 50, 780),
        ]
        for n, word in enumerate(words)
    ]
    document = convert(pdf([contents, *bodies]))
    assert shown(document) == [
        f"Text of page {word} begins here and goes on in the next line to {word}." for word in words
    ]
    assert pages(document) == [2, 3, 4, 5, 6]


def test_divided_words_are_joined_by_the_words_of_the_file() -> None:
    text = (
        "The distribution has a well-known archive. The distri-\n"
        "bution is free. It is the well-\nknown one. See https://www.debian.org/\ndoc for more."
    )
    assert shown(convert(pdf([lines(text, 80)]))) == [
        (
            "The distribution has a well-known archive. The distribution is free. It is the "
            "well-known one. See https://www.debian.org/doc for more."
        )
    ]


def test_a_paragraph_goes_on_in_the_next_column_and_page() -> None:
    left = lines("The text of the left column is read first, and it\nends in the middle", 80, 50)
    right = lines("of a sentence that goes on in the other column\nand, later,", 80, 320)
    document = convert(pdf([[*left, *right], lines("on the next page.", 80)]))
    assert shown(document) == [
        (
            "The text of the left column is read first, and it ends in the middle of a sentence that "
            "goes on in the other column and, later, on the next page."
        )
    ]


def test_items_terms_tables_and_code() -> None:
    document = convert(
        pdf(
            [
                [
                    *lines(PROSE, 40),
                    Typed("\u2022 main is free", 60, 80),
                    Typed("and complete", 68, 92),
                    Typed("\u2022 contrib", 60, 104),
                    Typed("required", 50, 140),
                    *lines(
                        "Packages that are necessary for the proper functioning\nof it.", 152, 75
                    ),
                    Typed("Suite", 50, 200, 10, "F2"),
                    Typed("Version", 200, 200, 10, "F2"),
                    Typed("stable", 50, 212),
                    Typed("12", 200, 212),
                    Typed("testing", 50, 224),
                    Typed("13, which is", 200, 224),
                    Typed("not yet out", 200, 236),
                    Typed("if x:", 50, 270, 10, "F3"),
                    Typed("go(1)", 74, 282, 10, "F3"),
                ]
            ]
        )
    )
    assert shown(document) == [
        PROSE.replace("\n", " "),
        "- main is free and complete",
        "- contrib",
        "- required: Packages that are necessary for the proper functioning of it.",
        "| Suite: stable; Version: 12",
        "| Suite: testing; Version: 13, which is not yet out",
        "$ if x:\n    go(1)",
    ]


def test_pages_without_text_are_a_note_and_a_file_without_text_a_failure() -> None:
    assert convert(pdf([lines(PROSE, 80), [], []])).notes == ("2 of 3 pages have no text",)
    with pytest.raises(ConversionError) as caught:
        convert(pdf([[], []]))
    assert caught.value.reason is FailureReason.NO_TEXT
    assert caught.value.detail == "none of its 2 pages has text, as in a scan"


@pytest.mark.parametrize("data", [b"%PDF-1.4\n", pdf([lines(PROSE, 80)])[:300]])
def test_a_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(data)
    assert caught.value.reason is FailureReason.DAMAGED
    assert caught.value.detail.startswith("the PDF file is damaged: ")


def test_an_encrypted_file_needs_a_password() -> None:
    with pytest.raises(ConversionError) as caught:
        convert(Path(__file__).with_name("encrypted.pdf").read_bytes())
    assert caught.value.reason is FailureReason.PASSWORD
    assert caught.value.detail == "the PDF file is encrypted"
