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
from winnow.text.language import LanguageCheck
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
        encoder.tokenise("\u200d")


@pytest.mark.parametrize("refuse", [False, True])
async def test_a_question_in_another_language_is_marked_or_refused(
    bundle: Bundle, refuse: bool
) -> None:
    """A question in the bundle's language is neither."""
    tokenizer = Tokenizer(bundle.tokenizer)
    model = open_question_encoder(bundle, tokenizer.special)
    encoder = QuestionEncoder(
        bundle,
        tokenizer,
        CachedTextEncoder(LocalTextEncoder(model, 1), TWO),
        languages=LanguageCheck(bundle.manifest.languages),
        refuse_unread=refuse,
    )
    assert encoder.tokenise("Who won the Tour de France?").unread_language == ""
    german = "Wer hat die Tour de France gewonnen?"
    if refuse:
        with pytest.raises(InvalidRequestError, match=r"'de', .* they read en"):
            encoder.tokenise(german)
    else:
        assert encoder.tokenise(german).unread_language == "de"
    encoder.close()


async def test_the_same_tokens_are_encoded_once(encoder: QuestionEncoder) -> None:
    first, again = Timings(), Timings()
    one, _ = await encoder.encode(encoder.tokenise("Who is it?"), first)
    two, _ = await encoder.encode(encoder.tokenise("WHO   is it ?"), again)
    assert one.vector is two.vector
    assert first.encode > 0
    assert again.encode == 0


async def test_the_cache_forgets_what_is_longest_unused(encoder: QuestionEncoder) -> None:
    async def vector(text: str) -> object:
        return (await encoder.encode(encoder.tokenise(text), Timings()))[0].vector

    vectors = {text: await vector(text) for text in ("one", "two", "one", "three")}
    assert await vector("one") is vectors["one"]
    assert await vector("two") is not vectors["two"]


async def test_a_long_question_is_cut_and_says_so(encoder: QuestionEncoder) -> None:
    question, text = await encoder.encode(encoder.tokenise("word " * 200), Timings())
    assert text.truncated
    assert len(question.token_ids) == 62
