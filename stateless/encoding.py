"""Turns questions into encodings: tokenises, cuts what is too long, encodes.

Knows the bundle's limit on length; does not know where its `TextEncoder` runs or what it keeps.
"""

import time
from dataclasses import dataclass

from winnow.bundle import Bundle
from winnow.domain.answered import Timings
from winnow.domain.question import EncodedQuestion
from winnow.errors import InvalidRequestError, Violation
from winnow.stateless.heads.encoder_groups import EncodedText
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import TextEncoder
from winnow.text.tokenizer import Tokenizer, Tokens

_SPECIAL = 2


@dataclass(frozen=True, slots=True)
class TokenisedQuestion:
    """A question with its tokens, made once for cache, encoder and heads."""

    text: str
    tokens: Tokens
    """The tokens that are read."""
    truncated: bool
    """Whether the question's end was cut off."""
    seconds: float = 0.0
    """Time that tokenising took."""

    @property
    def ids(self) -> tuple[int, ...]:
        """Ids of the tokens."""
        return self.tokens.ids


class QuestionEncoder:
    """Encodes questions, each by itself, so that none depends on the others."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, encoder: TextEncoder) -> None:
        self._tokenizer, self._encoder = tokenizer, encoder
        self._most = bundle.manifest.encoder.max_question_tokens - _SPECIAL
        self._fingerprint = bundle.manifest.fingerprint

    def tokenise(self, text: str) -> TokenisedQuestion:
        """Cuts a text into tokens; raises InvalidRequestError if it has no word."""
        started = time.perf_counter()
        tokens = self._tokenizer.tokenise(text)
        if not tokens.ids:
            raise InvalidRequestError(Violation("question", "has no word in it"))
        first, truncated = tokens.first(self._most), len(tokens) > self._most
        return TokenisedQuestion(text, first, truncated, time.perf_counter() - started)

    async def encode(
        self, question: TokenisedQuestion, timings: Timings, client: str = ""
    ) -> tuple[EncodedQuestion, EncodedText]:
        """The question's encoding for shards, and the same for heads; adds to `timings`.

        `client`: key of the caller, for sharing the encoder fairly.
        """
        ids, truncated = question.ids, question.truncated
        with span("encode", {"winnow.tokens": len(ids)}) as step:
            encoding = await self._encoder.encode(ids, client)
            step.set("winnow.queue_ms", encoding.queue * 1e3)
        timings.tokenise = question.seconds
        timings.queue += encoding.queue
        timings.encode = encoding.encode
        vector = encoding.vector
        encoded = EncodedQuestion(
            text=question.text,
            token_ids=ids,
            vector=vector,
            bundle_fingerprint=self._fingerprint,
            client=client,
        )
        return encoded, EncodedText(question.text, question.tokens, encoding, truncated)

    async def warm_up(self) -> None:
        """Encodes once at several lengths: first runs at a new length are slow."""
        await self._encoder.warm_up(self._most)

    def close(self) -> None:
        """Ends the encoder."""
        self._encoder.close()
