"""Documents are cut along their structure."""

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.documents.cutting import cut
from winnow.documents.document import BlockKind, CutPassage, Document, DocumentBuilder
from winnow.documents.word_ranges import word_spans

_SENTENCE = "The archive has three areas for packages. "
_WORDS = 7
_KINDS = st.sampled_from([each for each in BlockKind if each is not BlockKind.HEADING])


def document(*blocks: tuple[BlockKind, str] | tuple[BlockKind, str, int]) -> Document:
    builder = DocumentBuilder()
    for kind, text, *level in blocks:
        builder.add(kind, text, level=level[0] if level else 0)
    return builder.build("Manual")


def texts(document: Document) -> list[str]:
    return [document.text[each.start : each.end] for each in cut(document)]


def heading(text: str, level: int = 1) -> tuple[BlockKind, str, int]:
    return BlockKind.HEADING, text, level


def paragraph(sentences: int) -> tuple[BlockKind, str]:
    return BlockKind.PARAGRAPH, _SENTENCE * sentences


def test_short_paragraphs_of_a_section_form_one_passage() -> None:
    """Paragraphs of fewer than 100 words together stay together."""
    (passage,) = texts(document(heading("Areas"), paragraph(3), paragraph(4)))
    assert passage == f"{(_SENTENCE * 3).strip()}\n\n{(_SENTENCE * 4).strip()}"


def test_no_passage_spans_a_heading() -> None:
    """Sections are passages, however short, and know the headings above them."""
    passages = list(
        cut(
            document(
                heading("Policy"),
                heading("Areas", 2),
                paragraph(1),
                heading("main", 3),
                paragraph(1),
                heading("Priorities", 2),
                paragraph(1),
            )
        )
    )
    assert [each.headings for each in passages] == [
        ("Policy", "Areas"),
        ("Policy", "Areas", "main"),
        ("Policy", "Priorities"),
    ]


def test_a_heading_without_text_is_a_passage() -> None:
    """A slide that has only a title is found, too."""
    assert texts(document(heading("Agenda"), heading("Thank you"))) == ["Agenda", "Thank you"]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    """A passage never ends in the middle of a sentence that fits a passage."""
    passages = texts(document(paragraph(40)))
    assert len(passages) > 1
    assert all(each.endswith("packages.") and each.startswith("The") for each in passages)


def test_a_list_stays_with_the_line_before_it() -> None:
    """The line that introduces a list begins the passage of the list's first items."""
    items = [(BlockKind.LIST_ITEM, f"item {number} of the list") for number in range(10)]
    passages = texts(document(paragraph(13), (BlockKind.PARAGRAPH, "The areas are:"), *items))
    assert passages[-1].startswith("The areas are:\n\nitem 0 of the list\nitem 1")


def test_a_short_remainder_joins_the_passage_before() -> None:
    """A section does not end with a passage of a few words, if these fit the passage before."""
    (passage,) = texts(document(paragraph(14), (BlockKind.PARAGRAPH, "See section 5.")))
    assert passage.endswith("See section 5.")


_HOSTILE = "ab :.\n\u4e00\u0301\u200d\u05d0\U0001f469"
"""Characters of words, sentences, right-to-left text, marks and emoji."""


@pytest.mark.parametrize("text", [". " * 3_000, "\u0301" * 9_000, "a. " * 3_000, "word " * 3_000])
def test_the_time_does_not_depend_on_the_structure(text: str) -> None:
    """It is a few calls for each word, even if every word is a sentence."""
    whole = document((BlockKind.PARAGRAPH, text))
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        passages = list(cut(whole))
    finally:
        sys.setprofile(None)
    assert calls < 100 * 3_000
    assert all(each.end - each.start <= 2_000 for each in passages)


def test_a_passage_has_few_headings_of_limited_length() -> None:
    """Of deeply nested headings, the outermost and the innermost are kept."""
    levels = [heading(f"{number} {'x' * 500}", number) for number in range(1, 101)]
    (passage,) = cut(document(*levels, paragraph(1)))
    assert [each.split()[0] for each in passage.headings] == [
        "1",
        *(str(number) for number in range(82, 101)),
    ]
    assert max(map(len, passage.headings)) == 240


@given(st.data())
def test_passages_cover_all_words_in_order(data: st.DataObject) -> None:
    """Every word of a document without headings is in exactly one passage of limited size."""
    blocks: Sequence[tuple[BlockKind, str]] = data.draw(
        st.lists(st.tuples(_KINDS, st.text(_HOSTILE, max_size=400)), max_size=8)
    )
    whole = document(*blocks)
    passages = list(cut(whole))
    assert [word for each in passages for word in words(whole, each)] == _all_words(whole)
    assert all(len(words(whole, each)) <= 150 for each in passages)
    ends = [0, *(each.end for each in passages)]
    assert all(each.start >= end for each, end in zip(passages, ends, strict=False))


def words(document: Document, passage: CutPassage) -> list[str]:
    text = document.text[passage.start : passage.end]
    return [text[start:end] for start, end in word_spans(text)]


def _all_words(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in word_spans(document.text)]
