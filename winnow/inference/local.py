"""A `TextEncoder` that encodes in threads of this process."""

import time
from collections.abc import Sequence
from functools import partial

from winnow.inference.encoder import Encoder
from winnow.inference.fair_threads import FairThreads
from winnow.text.encoder import OnEncoded, TextEncoding

_WARM_UP = (1, 8, 16, 32)
"""Lengths of warm-up texts in tokens, besides the maximum."""
_WORD = 1_000
"""An arbitrary token id."""


def lengths_to_warm_up(longest: int) -> tuple[int, ...]:
    """Returns the lengths of warm-up texts, in tokens, up to `longest`."""
    return (*(each for each in _WARM_UP if each < longest), longest)


def placeholder_tokens(tokens: int) -> tuple[int, ...]:
    """Returns the token ids of a made-up text with `tokens` tokens."""
    return (_WORD,) * tokens


class LocalTextEncoder:
    """Runs a question encoder in threads, one text per run."""

    def __init__(self, encoder: Encoder, threads: int) -> None:
        self._encoder = encoder
        self._pool = FairThreads(threads, "encode")

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes a text in the client's turn, in the next free thread."""
        submitted = time.perf_counter()
        return await self._pool.run(
            client, partial(self._encode, tuple(ids), submitted, on_encoded)
        )

    async def warm_up(self, longest: int) -> None:
        """Encodes made-up texts of several lengths up to `longest` tokens."""
        for length in lengths_to_warm_up(longest):
            await self.encode(placeholder_tokens(length))

    def close(self) -> None:
        """Waits for running texts, and cancels waiting ones."""
        self._pool.close()

    def _encode(
        self, ids: tuple[int, ...], submitted: float, on_encoded: OnEncoded | None
    ) -> TextEncoding:
        began = time.perf_counter()
        done = self._encoder.encode_question(ids)
        made = TextEncoding(
            done.vector,
            done.states,
            began - submitted,
            time.perf_counter() - began,
            tokens=done.tokens,
        )
        if on_encoded is not None:
            on_encoded(made)
        return made
