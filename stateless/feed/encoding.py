"""Passages to writes: tokenise, check, encode, in threads that give way to questions.

Knows the bundle's models; does not know where a write goes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from winnow.bundle import Bundle
from winnow.domain.write import EncodedPassage, Put, Write
from winnow.errors import InvalidRequestError
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import some_text
from winnow.inference.niceness import give_way
from winnow.inference.runtime import InferenceOptions, Runtime
from winnow.passages.encoding import SPECIAL, PassageEncoder
from winnow.stateless.feed.validation import MOST_TOKENS, too_many_tokens
from winnow.text.tokenizer import Tokenizer, Tokens

_WARM_UP = (16, 64, 128)
"""Tokens, beside the longest passage."""


@dataclass(frozen=True, slots=True)
class EncodedPut:
    """A write, and whether the encoder read only the beginning of its passage."""

    write: Write
    truncated: bool


@dataclass(frozen=True, slots=True)
class TokenisedPut:
    """A passage with its tokens, and whether the encoder reads only the beginning of it."""

    put: Put
    title: Tokens
    text: Tokens
    truncated: bool


class FeedEncoder:
    """Encodes passages as `winnow index build` does, to the last bit."""

    def __init__(self, bundle: Bundle, runtime: Runtime, threads: int, nice: int) -> None:
        """Opens the models: seconds.

        Args:
            bundle: of the front.
            runtime: what runs the encoder.
            threads: that encode.
            nice: how far they give way to those that answer questions.

        Raises:
            ArtefactError: a model cannot be opened.

        """
        entry = bundle.manifest.encoder
        self._tokenizer = Tokenizer(bundle.tokenizer)
        options = InferenceOptions(runtime, runs=threads)
        model = open_passage_encoder(bundle, self._tokenizer.special, options)
        self._encoder = PassageEncoder(model, entry)
        self._longest = entry.max_passage_tokens - SPECIAL
        self._pool = FairThreads(threads, "feed", partial(give_way, nice))

    async def tokenise(self, puts: Sequence[Put], client: str = "") -> list[TokenisedPut]:
        """Tokenises passages: brief beside encoding, and not for the event loop.

        `client`: a key of the caller, for sharing the threads fairly.

        Raises:
            InvalidRequestError: a text has too many tokens; every such text is named.

        """
        tokenised = await self._pool.run(client, partial(self._tokenise, puts))
        wrong = [
            too_many_tokens(number, len(each.text))
            for number, each in enumerate(tokenised)
            if len(each.text) > MOST_TOKENS
        ]
        if wrong:
            raise InvalidRequestError(*wrong)
        return tokenised

    async def encode(self, puts: Sequence[TokenisedPut], client: str = "") -> list[EncodedPut]:
        """Encodes passages, each by itself; returns them in their order."""
        return await asyncio.gather(
            *(self._pool.run(client, partial(self._encode, each)) for each in puts)
        )

    async def warm_up(self) -> None:
        """Encodes at several lengths: first runs at a length are slow."""
        for tokens in (*(each for each in _WARM_UP if each < self._longest), self._longest):
            text = some_text(tokens)
            await self._pool.run("", partial(self._encoder.encode, (), text))

    def close(self) -> None:
        """Drops what waits, and waits for the threads to end."""
        self._pool.close()

    def _tokenise(self, puts: Sequence[Put]) -> list[TokenisedPut]:
        titles = self._tokenizer.tokenise_many([put.passage.title for put in puts])
        texts = self._tokenizer.tokenise_many([put.passage.text for put in puts])
        return [
            TokenisedPut(put, title, text, self._encoder.truncates(title.ids, text.ids))
            for put, title, text in zip(puts, titles, texts, strict=True)
        ]

    def _encode(self, tokenised: TokenisedPut) -> EncodedPut:
        put, title, text = tokenised.put, tokenised.title.ids, tokenised.text
        vector = self._encoder.encode(title, text.ids)
        encoded = EncodedPassage(put.passage, title, text, vector)
        write = Write(put.passage.id, put.version, encoded)
        return EncodedPut(write, tokenised.truncated)
