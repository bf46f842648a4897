"""Questions to encodings: tokenise, cut what is too long, encode.

Knows the bundle's limit on length; does not know where its `TextEncoder` runs or what it keeps.
"""

import time
from dataclasses import dataclass

from winnow.bundle import Bundle
from winnow.domain.answered import Timings
from winnow.domain.question import EncodedQuestion
from winnow.errors import InvalidRequestError, Violation
from winnow.stateless.heads.text import EncodedText
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import TextEncoder
from winnow.text.tokenizer import Tokenizer, Tokens

_SPECIAL = 2


@dataclass(frozen=True, slots=True)
class Cut:
    """The tokens of a question that are read, and whether its end was cut off."""

    tokens: Tokens
    truncated: bool

    @property
    def ids(self) -> tuple[int, ...]:
        """Of the tokens."""
        return self.tokens.ids


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded question, and whether its end was cut off."""

    question: EncodedQuestion
    truncated: bool
    text: EncodedText
    """The same encoding, for heads."""


class QuestionEncoder:
    """Encodes questions, each by itself, so that none depends on the others."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, encoder: TextEncoder) -> None:
        self._tokenizer, self._encoder = tokenizer, encoder
        self._most = bundle.manifest.encoder.max_question_tokens - _SPECIAL
        self._fingerprint = bundle.manifest.fingerprint

    def tokenise(self, text: str) -> Cut:
        """The question's tokens; raises InvalidRequestError if it has no word in it."""
        tokens = self._tokenizer.tokenise(text)
        if not tokens.ids:
            raise InvalidRequestError(Violation("question", "has no word in it"))
        return Cut(tokens.first(self._most), len(tokens) > self._most)

    async def encode(self, text: str, timings: Timings, client: str = "") -> Encoded:
        """The question's encoding; writes what it took into `timings`.

        `client`: a key of the caller, for sharing the encoder fairly.

        Raises:
            InvalidRequestError: the question has no word in it.

        """
        with span("encode") as step:
            started = time.perf_counter()
            cut = self.tokenise(text)
            timings.tokenise = time.perf_counter() - started
            step.set("winnow.tokens", len(cut.ids))
            encoding = await self._encoder.encode(cut.ids, client)
            step.set("winnow.queue_ms", encoding.queue * 1e3)
        timings.queue += encoding.queue
        timings.encode = encoding.encode
        question = EncodedQuestion(text, cut.ids, encoding.vector, self._fingerprint, client)
        return Encoded(
            question, cut.truncated, EncodedText(text, cut.tokens, encoding, cut.truncated)
        )

    async def warm_up(self) -> None:
        """Encodes once at several lengths: first runs at a new length are slow."""
        await self._encoder.warm_up(self._most)

    def close(self) -> None:
        """Ends the encoder."""
        self._encoder.close()
