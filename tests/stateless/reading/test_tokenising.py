"""Tokens of long texts: the same as if the tokenizer took the text at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_reading import TOKENIZER, texts

from winnow.domain.text_reading import TextToRead
from winnow.stateless.reading import tokenising
from winnow.stateless.reading.tokenising import (
    batches,
    joined,
    parts_of_texts,
    segments,
    tokenise_batch,
)
from winnow.stateless.reading.windows import estimated_windows

PIECES = [
    "word ",
    "naïve",
    " é",
    "2,700 ",
    "\n\n",
    "中文",
    "a-b",
    "\U0001f600 ",
    "x" * 30,
    "\u0301",
]


@pytest.mark.hypothesis
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_segments_give_the_tokens_and_offsets_of_the_whole_text(text: str) -> None:
    """Unless a single word is longer than a segment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenising, "SEGMENT_CHARACTERS", 200)
        given_texts = [TextToRead(text, "A title"), TextToRead("")]
        parts = parts_of_texts(given_texts)
        assert all(len(part.text) <= 200 for own in parts for part in own)
        groups = batches(part for own in parts for part in own)
        tokens = [each for group in groups for each in tokenise_batch(TOKENIZER, group)]
        first, empty = joined(given_texts, parts, tokens)
    assert "".join(part.text for part in parts[1]) == text
    if max(map(len, text.split()), default=0) < 100:
        assert first.tokens == TOKENIZER.tokenise(text)
    assert first.title_ids == TOKENIZER.tokenise("A title").ids
    assert empty.tokens.ids == ()


def test_a_text_without_white_space_is_cut_anywhere() -> None:
    assert [len(part.text) for part in segments("x" * 9_000)] == [4_000, 4_000, 1_000]


def test_scripts_with_short_tokens_are_expected_to_have_more_windows() -> None:
    """Otherwise a server would admit three times as many Chinese texts as it can read."""
    assert estimated_windows(texts("", "a" * 799, "a" * 800)) == 1 + 1 + 2
    assert estimated_windows(texts("\u4e2d" * 800)) == 4
