"""Documents to passages of 100 words: pieces of the source, and nothing is lost."""

import re

from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.write import FedPassage
from winnow.passages.cutting import MAX_PASSAGE_CHARACTERS, WORDS, cut_document


def texts(text: str) -> list[str]:
    return [each.text for each in cut_document(FedPassage(id="doc", title="T", text=text))]


def test_passages_have_a_hundred_words_and_the_last_has_the_rest() -> None:
    words = [f"word{n}" for n in range(250)]
    made = list(
        cut_document(FedPassage(id="doc", title="Title", text=" ".join(words), metadata={"a": 1}))
    )
    assert [each.id for each in made] == ["doc#0", "doc#1", "doc#2"]
    assert [each.text for each in made] == [
        " ".join(words[:100]),
        " ".join(words[100:200]),
        " ".join(words[200:]),
    ]
    assert all((each.title, each.metadata) == ("Title", {"a": 1}) for each in made)


def test_a_short_document_is_one_passage_without_the_space_around_it() -> None:
    assert texts("  two\n\n words ") == ["two\n\n words"]


def test_a_document_without_a_word_has_no_passage() -> None:
    assert texts("") == texts(" \n\t") == []


def test_an_ideograph_is_a_word() -> None:
    assert [len(each) for each in texts("中" * 250)] == [100, 100, 50]
    assert texts("我爱 Paris") == ["我爱 Paris"]


def test_a_text_without_spaces_is_cut_but_never_before_a_mark() -> None:
    pieces = texts("e\u0301" * 5_000)
    assert "".join(pieces) == "e\u0301" * 5_000
    assert all(each[0] == "e" for each in pieces)


parts = st.sampled_from(["a", "é", "e\u0301", "中", " ", "\n", "\u3000", "x" * 700])


@given(st.lists(parts, max_size=600).map("".join))
def test_every_piece_is_of_the_source_and_only_space_is_lost(text: str) -> None:
    pieces = texts(text)
    assert re.sub(r"\s", "", "".join(pieces)) == re.sub(r"\s", "", text)
    place = 0
    for piece in pieces:
        place = text.index(piece, place) + len(piece)
        assert len(piece) <= MAX_PASSAGE_CHARACTERS + 700
        assert len(piece.split()) <= WORDS
        assert piece == piece.strip()
