"""Fed passages to writes: validate, tokenise, encode.

Knows the bundle's models; does not know where a write goes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from winnow.bundle import Bundle
from winnow.domain.write import FedPassage, Write
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import placeholder_tokens
from winnow.inference.niceness import give_way
from winnow.inference.runtime import InferenceOptions, Runtime
from winnow.passages.canonical import PassageDigest, digest
from winnow.passages.encoding import SPECIAL, PassageEncoder, TokenisedPut, tokenise
from winnow.stateless.feed.validation import check_tokens, validate_puts
from winnow.text.tokenizer import Tokenizer

_WARM_UP = (16, 64, 128)
"""Tokens, beside the longest passage."""


@dataclass(frozen=True, slots=True)
class PreparedPut:
    """A valid passage with its tokens and its digest.

    Its tokens are packed: messages of streams wait for room with them.
    """

    write: Write
    """The write that stores it, without a vector."""
    digest: PassageDigest
    truncated: bool
    """Whether the encoder reads only the beginning of the text."""

    @property
    def id(self) -> str:
        return self.write.id


class FeedEncoder:
    """Encodes passages as `winnow index build` does, to the last bit."""

    def __init__(self, bundle: Bundle, runtime: Runtime, threads: int, nice: int) -> None:
        """Opens the models, which takes seconds.

        Args:
            bundle: the bundle of the front.
            runtime: the runtime of the encoder.
            threads: the number of threads that encode.
            nice: how far they give way to the threads that answer questions.

        Raises:
            ArtefactError: a model cannot be opened.

        """
        entry = bundle.manifest.encoder
        self._tokenizer = Tokenizer(bundle.tokenizer)
        options = InferenceOptions(runtime=runtime, runs=threads)
        model = open_passage_encoder(bundle, self._tokenizer.special, options)
        self._encoder = PassageEncoder(model, entry)
        self._longest = entry.max_passage_tokens - SPECIAL
        self._pool = FairThreads(threads, "feed", partial(give_way, nice))

    def prepare(self, passages: Sequence[FedPassage]) -> list[PreparedPut]:
        """Validates and tokenises the passages of a request: brief beside encoding them, and too
        long for the event loop.

        Raises:
            InvalidRequestError: naming every field that breaks a rule.

        """
        tokenised = list(tokenise(self._tokenizer, validate_puts(passages)))
        check_tokens([len(each.text) for each in tokenised])
        return [self._prepared(each) for each in tokenised]

    async def encode(self, puts: Sequence[PreparedPut], client: str = "") -> list[Write]:
        """Encodes passages, each by itself, in threads that give way to questions.

        `client`: a key of the caller, for sharing the threads fairly.
        """
        return await asyncio.gather(
            *(self._pool.run(client, partial(self._encode, each.write)) for each in puts)
        )

    async def warm_up(self) -> None:
        """Encodes at several lengths: first runs at a length are slow."""
        for tokens in (*(each for each in _WARM_UP if each < self._longest), self._longest):
            text = placeholder_tokens(tokens)
            await self._pool.run("", partial(self._encoder.encode, (), text))

    def close(self) -> None:
        """Drops the passages that wait, and waits for the threads to end."""
        self._pool.close()

    def _prepared(self, tokenised: TokenisedPut) -> PreparedPut:
        passage, version = tokenised.put.passage, tokenised.put.version
        truncated = self._encoder.truncates(tokenised.title.ids, tokenised.text.ids)
        own = PassageDigest(passage.id, version, digest(passage))
        return PreparedPut(tokenised.write(), own, truncated)

    def _encode(self, write: Write) -> Write:
        put = write.put
        assert put is not None
        title, text = (
            np.frombuffer(ids, "<u4").tolist() for ids in (put.title_tokens, put.text_tokens)
        )
        vector = np.ascontiguousarray(self._encoder.encode(title, text), "<f4")
        return replace(write, put=replace(put, vector=vector.tobytes()))
