"""Questions to encodings, with the real encoder."""

from collections.abc import Iterator

import pytest

from winnow.bundle import Bundle
from winnow.domain.answered import Timings
from winnow.errors import InvalidRequestError
from winnow.inference.encoder import open_question_encoder
from winnow.inference.local import LocalTextEncoder
from winnow.stateless.encoding import QuestionEncoder
from winnow.text.cached import CachedTextEncoder
from winnow.text.tokenizer import Tokenizer

TWO = 5_000
"""Bytes in which two encodings of a word have room, and three have not."""


@pytest.fixture
def encoder(bundle: Bundle) -> Iterator[QuestionEncoder]:
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special)
    made = QuestionEncoder(bundle, tokenizer, CachedTextEncoder(LocalTextEncoder(model, 1), TWO))
    yield made
    made.close()


async def test_a_question_without_words_is_invalid(encoder: QuestionEncoder) -> None:
    with pytest.raises(InvalidRequestError, match="no word"):
        await encoder.encode("\u200d", Timings())


async def test_the_same_tokens_are_encoded_once(encoder: QuestionEncoder) -> None:
    first, again = Timings(), Timings()
    one = await encoder.encode("Who is it?", first)
    two = await encoder.encode("WHO   is it ?", again)
    assert one.question.vector is two.question.vector
    assert first.encode > 0
    assert again.encode == 0


async def test_the_cache_forgets_what_is_longest_unused(encoder: QuestionEncoder) -> None:
    vectors = {}
    for text in ("one", "two", "one", "three"):
        vectors[text] = (await encoder.encode(text, Timings())).question.vector
    assert (await encoder.encode("one", Timings())).question.vector is vectors["one"]
    assert (await encoder.encode("two", Timings())).question.vector is not vectors["two"]


async def test_a_long_question_is_cut_and_says_so(encoder: QuestionEncoder) -> None:
    got = await encoder.encode("word " * 200, Timings())
    assert got.truncated
    assert len(got.question.token_ids) == 62
