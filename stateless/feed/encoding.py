"""Validates, tokenises and encodes fed passages into writes.

This module knows the bundle's models. It does not know where writes are stored.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from winnow.bundle import Bundle
from winnow.domain.write import FedPassage, Write
from winnow.inference.encoder import open_passage_encoder
from winnow.inference.fair_threads import FairThreads
from winnow.inference.local import placeholder_tokens
from winnow.inference.niceness import lower_priority
from winnow.inference.options import InferenceOptions, Runtime
from winnow.passages.canonical import PassageDigest, digest
from winnow.passages.encoding import SPECIAL, PassageEncoder, TokenisedPut, tokenise
from winnow.stateless.feed.validation import check_tokens, validate_puts
from winnow.text.tokenizer import Tokenizer

_WARM_UP_LENGTHS = (16, 64, 128)
"""Lengths of the warm-up texts in tokens. One more text has the maximum length."""


@dataclass(frozen=True, slots=True)
class PreparedPut:
    """A valid passage with its tokens and its digest.

    The tokens are packed to save memory while a message of a stream waits for room.
    """

    write: Write
    """The write that stores the passage. Its vector is still missing."""
    digest: PassageDigest
    truncated: bool
    """Whether the encoder reads only the beginning of the text."""

    @property
    def id(self) -> str:
        return self.write.id


class FeedEncoder:
    """Encodes passages to exactly the vectors that `winnow index build` computes.

    One run of the encoder gives the vector of a passage and its token vectors.
    """

    _token_vectors = ""
    """Fingerprint of the token vectors that the encoder returns; empty if it returns none."""

    def __init__(self, bundle: Bundle, runtime: Runtime, threads: int, nice: int) -> None:
        """Opens the models, which takes seconds.

        Args:
            bundle: the bundle of the front.
            runtime: the runtime of the encoder.
            threads: number of encoding threads.
            nice: niceness of these threads. A higher value gives questions more priority.

        Raises:
            ArtefactError: a model cannot be opened.

        """
        entry = bundle.manifest.encoder
        self._tokenizer = Tokenizer(bundle.tokenizer)
        options = InferenceOptions(runtime=runtime, runs=threads)
        special = self._tokenizer.special
        model = open_passage_encoder(bundle, special, options, token_vectors=True)
        self._token_vectors = bundle.manifest.token_vectors_fingerprint
        self._encoder = PassageEncoder(model, entry)
        self._max_tokens = entry.max_passage_tokens - SPECIAL
        self._pool = FairThreads(threads, "feed", partial(lower_priority, nice))

    def prepare(self, passages: Sequence[FedPassage]) -> list[PreparedPut]:
        """Validates and tokenises the passages of a request.

        Call it in a thread, because it would block the event loop.

        Raises:
            InvalidRequestError: a field breaks a rule; the error names every invalid field.

        """
        tokenised = list(tokenise(self._tokenizer, validate_puts(passages)))
        check_tokens([len(each.text) for each in tokenised])
        return [self._prepare(each) for each in tokenised]

    async def encode(
        self, puts: Sequence[PreparedPut], client: str = "", token_vectors: str = ""
    ) -> list[Write]:
        """Encodes each passage separately, in threads with a lower priority than questions.

        `client` is the key of the caller, for fair sharing of the threads. `token_vectors` is the
        fingerprint of the token vectors that the shards use: the writes have those of this
        fingerprint.
        """
        with_tokens = token_vectors != "" and token_vectors == self._token_vectors
        return await asyncio.gather(
            *(
                self._pool.run(client, partial(self._encode, each.write, with_tokens))
                for each in puts
            )
        )

    async def warm_up(self) -> None:
        """Encodes texts of several lengths, because the first run at each length is slow."""
        for tokens in (
            *(each for each in _WARM_UP_LENGTHS if each < self._max_tokens),
            self._max_tokens,
        ):
            text = placeholder_tokens(tokens)
            await self._pool.run("", partial(self._encoder.encode, (), text))

    def close(self) -> None:
        """Drops the waiting passages, and waits until the threads have ended."""
        self._pool.close()

    def _prepare(self, tokenised: TokenisedPut) -> PreparedPut:
        passage, version = tokenised.put.passage, tokenised.put.version
        truncated = self._encoder.truncates(tokenised.title.ids, tokenised.text.ids)
        passage_digest = PassageDigest(passage.id, version, digest(passage))
        return PreparedPut(tokenised.write(), passage_digest, truncated)

    def _encode(self, write: Write, with_tokens: bool) -> Write:
        put = write.put
        assert put is not None
        title, text = (
            np.frombuffer(ids, "<u4").tolist() for ids in (put.title_tokens, put.text_tokens)
        )
        if not with_tokens:
            return replace(
                write, put=replace(put, vector=_packed(self._encoder.encode(title, text)))
            )
        vector, levels = self._encoder.encode_with_tokens(title, text)
        encoded = replace(
            put,
            vector=_packed(vector),
            token_levels=b"" if levels is None else levels.tobytes(),
            token_vectors_fingerprint=self._token_vectors,
        )
        return replace(write, put=encoded)


def _packed(vector: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(vector, "<f4").tobytes()
