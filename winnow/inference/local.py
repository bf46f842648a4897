"""Encoding in threads of this process, as a `TextEncoder`."""

import time
from collections.abc import Sequence
from functools import partial

from winnow.inference.encoder import Encoder
from winnow.inference.fair_threads import FairThreads
from winnow.text.encoder import OnEncoded, TextEncoding

_WARM_UP = (1, 8, 16, 32)
"""Numbers of tokens to encode at first, beside the longest text."""
_WORD = 1_000
"""Any token id."""


def lengths_to_warm_up(longest: int) -> tuple[int, ...]:
    """Numbers of tokens up to `longest`."""
    return (*(each for each in _WARM_UP if each < longest), longest)


def placeholder_tokens(tokens: int) -> tuple[int, ...]:
    """Token ids of a text."""
    return (_WORD,) * tokens


class LocalTextEncoder:
    """Runs a question encoder, one text a thread."""

    def __init__(self, encoder: Encoder, threads: int) -> None:
        self._encoder = encoder
        self._pool = FairThreads(threads, "encode")

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Encodes in the next thread that is free, when it is the client's turn."""
        submitted = time.perf_counter()
        return await self._pool.run(
            client, partial(self._encode, tuple(ids), submitted, on_encoded)
        )

    async def warm_up(self, longest: int) -> None:
        """Encodes at several lengths up to `longest` tokens."""
        for length in lengths_to_warm_up(longest):
            await self.encode(placeholder_tokens(length))

    def close(self) -> None:
        """Cancels the texts that wait, and waits for the threads to end."""
        self._pool.close()

    def _encode(
        self, ids: tuple[int, ...], submitted: float, on_encoded: OnEncoded | None
    ) -> TextEncoding:
        began = time.perf_counter()
        vector, states = self._encoder.with_states(ids)
        made = TextEncoding(vector, states, began - submitted, time.perf_counter() - began)
        if on_encoded is not None:
            on_encoded(made)
        return made
