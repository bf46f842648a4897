"""A ring: an encoder and its heads."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from winnow.domain.predicted import HeadInMemory, RingInfo
from winnow.heads.heads import Heads
from winnow.heads.run import BeginEncoderThreadRun, no_heads
from winnow.stateless.heads.text import EncodedText
from winnow.text.encoder import TextEncoder, Then
from winnow.text.tokenizer import Tokenizer, Tokens

_QUICK = 500
"""Characters that are tokenised in half a millisecond, whatever they are."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What heads take, where they are in this process."""

    budget_bytes: int = 0
    warm: tuple[HeadInMemory, ...] = ()


class Ring:
    """Encodes texts, and knows the heads that were trained on its encoder."""

    def __init__(
        self,
        name: str,
        fingerprint: str,
        tokenizer: Tokenizer,
        encoder: TextEncoder,
        most_tokens: int,
        heads: Heads,
        memory: Callable[[], Memory] = Memory,
        ahead: BeginEncoderThreadRun = no_heads,
    ) -> None:
        """`most_tokens`: that a text keeps, without special tokens; `ahead`: runs heads where texts
        are encoded.
        """
        self.name, self.fingerprint, self.heads = name, fingerprint, heads
        self.ahead = ahead
        self._tokenizer, self._encoder, self._most = tokenizer, encoder, most_tokens
        self._memory = memory

    async def tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        """All tokens of each text; of long ones in a thread, for the event loop's sake."""
        if sum(map(len, texts)) <= _QUICK:
            return self._tokenise(texts)
        return await asyncio.to_thread(self._tokenise, texts)

    async def encode(
        self, text: str, tokens: Tokens, client: str = "", then: Then | None = None
    ) -> EncodedText:
        """The encoding of a text by its first tokens. `client` is whose turn it is; `then` is what
        may be done where it is made.
        """
        kept = tokens.first(self._most)
        encoding = await self._encoder.encode(kept.ids, client, then)
        return EncodedText(text, kept, encoding, len(tokens) > self._most)

    def info(self) -> RingInfo:
        """What the ring is, and what it has in memory."""
        memory = self._memory()
        return RingInfo(self.name, self.fingerprint, memory.budget_bytes, memory.warm)

    async def warm_up(self) -> None:
        """Encodes at several lengths: first runs at a length are slow."""
        await self._encoder.warm_up(self._most)

    def _tokenise(self, texts: Sequence[str]) -> list[Tokens]:
        return [self._tokenizer.tokenise(text) for text in texts]
