"""Tokenises, truncates and encodes questions.

This module knows the bundle's limit of tokens. It does not know where the `TextEncoder` runs.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass

from winnow.bundle import Bundle
from winnow.domain.answered import Timings
from winnow.domain.question import EncodedQuestion
from winnow.errors import InvalidRequestError, invalid_field
from winnow.stateless.heads.encoder_groups import EncodedText
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import SPECIAL_TOKENS, TextEncoder
from winnow.text.language import LanguageCheck
from winnow.text.tokenizer import Tokenizer, Tokens

Weigh = Callable[[EncodedQuestion], EncodedQuestion]
"""Adapts an encoded question to the index that it is asked of."""


@dataclass(frozen=True, slots=True)
class TokenisedQuestion:
    """A question with its tokens, which the cache, the encoder and heads share."""

    text: str
    tokens: Tokens
    """The tokens that the models read, without those that were truncated."""
    truncated: bool
    """Whether tokens at the end of the question were left out."""
    _: KW_ONLY
    unread_language: str = ""
    """ISO 639-1 code of the question's language, if it is probably not read; otherwise empty."""
    seconds: float = 0.0
    """Time spent on tokenising, in seconds."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the tokens."""
        return self.tokens.ids


def unread_language_error(language: str, read: Collection[str]) -> InvalidRequestError:
    """Returns the error of a question in `language`. The models read only the languages `read`."""
    return invalid_field(
        "question",
        f"is probably in the language {language!r}, which the models of this server do not "
        f"read; they read {', '.join(sorted(read))}",
    )


class QuestionEncoder:
    """Encodes each question separately, so that its encoding does not depend on other questions."""

    def __init__(
        self,
        bundle: Bundle,
        tokenizer: Tokenizer,
        encoder: TextEncoder,
        *,
        languages: LanguageCheck | None = None,
        refuse_unread: bool = False,
    ) -> None:
        """`refuse_unread`: whether to refuse questions in languages that the bundle does not read.

        Without `languages`, the language of a question is not checked.
        """
        self._tokenizer, self._encoder = tokenizer, encoder
        self._languages, self._refuse_unread = languages, refuse_unread
        self._read_languages = bundle.manifest.languages
        self._max_tokens = bundle.manifest.encoder.max_question_tokens - SPECIAL_TOKENS
        self._fingerprint = bundle.manifest.fingerprint

    def tokenise(self, text: str) -> TokenisedQuestion:
        """Tokenises and truncates a question.

        Raises InvalidRequestError if it has no word, or its language is refused.
        """
        started = time.perf_counter()
        tokens = self._tokenizer.tokenise(text)
        if not tokens.ids:
            raise invalid_field("question", "has no word in it")
        kept, truncated = tokens.first(self._max_tokens), len(tokens) > self._max_tokens
        language = self._languages.unread_language(text) if self._languages else ""
        if language and self._refuse_unread:
            raise unread_language_error(language, self._read_languages)
        seconds = time.perf_counter() - started
        return TokenisedQuestion(text, kept, truncated, unread_language=language, seconds=seconds)

    async def encode(
        self, question: TokenisedQuestion, timings: Timings, client: str = ""
    ) -> tuple[EncodedQuestion, EncodedText]:
        """Encodes a question, and records the durations in `timings`.

        Returns the encoding in the form that shards need, and in the form that heads need.
        `client` is the key of the caller, for fair sharing of the encoder.
        """
        ids, truncated = question.ids, question.truncated
        with span("encode", {"winnow.tokens": len(ids)}) as step:
            encoding = await self._encoder.encode(ids, client)
            step.set("winnow.queue_ms", encoding.queue * 1e3)
        timings.tokenise = question.seconds
        timings.queue += encoding.queue
        timings.encode = encoding.encode
        encoded = EncodedQuestion(
            text=question.text,
            token_ids=ids,
            vector=encoding.vector,
            tokens=encoding.tokens,
            bundle_fingerprint=self._fingerprint,
            client=client,
        )
        return encoded, EncodedText(question.text, question.tokens, encoding, truncated)

    async def warm_up(self) -> None:
        """Encodes texts of several lengths, because the first run at each length is slow."""
        await self._encoder.warm_up(self._max_tokens)

    def close(self) -> None:
        """Closes the encoder."""
        self._encoder.close()
