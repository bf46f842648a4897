"""Raw documents to passages: parts of the source, and nothing is lost."""

import re

from hypothesis import given
from hypothesis import strategies as st

from winnow.documents.passages import raw_document_passages
from winnow.documents.word_ranges import MAX_PASSAGE_CHARACTERS
from winnow.domain.write import FedPassage

_SENTENCE = "The archive has three areas for packages."
_MAX_WORDS = 150


def texts(text: str) -> list[str]:
    return [each.text for each in raw_document_passages(FedPassage(id="doc", title="T", text=text))]


def test_passages_have_the_title_and_metadata_of_their_document() -> None:
    paragraph = " ".join([_SENTENCE] * 12)
    document = FedPassage(
        id="doc", title="Title", text=f"{paragraph}\n\n{paragraph}", metadata={"a": 1}
    )
    passages = list(raw_document_passages(document))
    assert [each.id for each in passages] == ["doc#0", "doc#1"]
    assert [each.text for each in passages] == [paragraph, paragraph]
    assert all((each.title, each.metadata) == ("Title", {"a": 1}) for each in passages)


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    made = texts(" ".join([_SENTENCE] * 40))
    assert len(made) > 1
    assert all(each.endswith("packages.") for each in made)


def test_a_list_stays_with_the_line_that_introduces_it() -> None:
    paragraph, item = " ".join([_SENTENCE] * 13), " ".join([_SENTENCE] * 5)
    introduced = f"The areas are:\n- main\n- contrib. {item}"
    assert texts(f"{paragraph}\n\n{introduced}") == [paragraph, introduced]


def test_a_short_document_is_one_passage_without_the_space_around_it() -> None:
    assert texts("  two\n\n words ") == ["two\n\n words"]


def test_a_document_without_a_word_has_no_passage() -> None:
    assert texts("") == texts(" \n\t") == []


def test_an_ideograph_is_a_word() -> None:
    assert [len(each) for each in texts("中" * 250)] == [150, 100]
    assert texts("我爱 Paris") == ["我爱 Paris"]


def test_a_text_without_spaces_is_cut_but_never_before_a_mark() -> None:
    pieces = texts("e\u0301" * 5_000)
    assert "".join(pieces) == "e\u0301" * 5_000
    assert all(each[0] == "e" for each in pieces)


parts = st.sampled_from(["a", "é", "e\u0301", "中", " ", "\n", "\u3000", "x" * 700, ".", "- "])


@given(st.lists(parts, max_size=600).map("".join))
def test_every_piece_is_of_the_source_and_only_space_is_lost(text: str) -> None:
    pieces = texts(text)
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text)
    place = 0
    for piece in pieces:
        place = text.index(piece, place) + len(piece)
        assert len(piece) <= MAX_PASSAGE_CHARACTERS + 700
        assert len(piece.split()) <= _MAX_WORDS
        assert piece == piece.strip()
