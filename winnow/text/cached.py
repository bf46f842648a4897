"""A `TextEncoder` with a cache, around any other one.

The key is the token ids. So spellings that the tokenizer does not tell apart (case, spaces) are one
entry (as in Roblox' BERT service, 40 % hits).
"""

import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from winnow.errors import OverloadedError
from winnow.policy.attempts import Asker, Lack
from winnow.policy.byte_bounded_lru import UNWATCHED, ByteBoundedLru, CacheWatch
from winnow.single_flight import SingleFlight
from winnow.text.encoder import TextEncoder, TextEncoding, Then

_OVERHEAD = 512
"""Bytes of an entry beside its arrays and its key, measured with `tracemalloc`."""
Value = TypeVar("Value", bound=np.generic)


class CachedTextEncoder:
    """Keeps the encodings used most recently, and never encodes a text twice at a time.

    One instance has one encoder, so no key has to name it.
    """

    def __init__(self, inner: TextEncoder, budget: int, watch: CacheWatch = UNWATCHED) -> None:
        """`budget`: bytes of all kept encodings; 0 keeps none."""
        self._inner, self._count = inner, watch.looked_up
        self._kept = ByteBoundedLru[bytes, TextEncoding](budget, watch)
        self._flights = SingleFlight[bytes, TextEncoding](lack_of_error=_lack)
        self._in_hand = Counter[str]()
        """Number of texts that the inner encoder works on, by client."""

    async def encode(
        self, ids: Sequence[int], client: str = "", then: Then | None = None
    ) -> TextEncoding:
        """The kept encoding, or a new one; its arrays are shared and cannot be written to.

        It is encoded in the best turn of the clients that wait for it; a client that is refused
        does not fail the others.
        """
        key = _key(ids)
        if (kept := self._kept.get(key)) is not None:
            self._count("hit")
            return kept
        self._count("hit" if key in self._flights else "miss")
        started = time.perf_counter()
        work = partial(self._encode, key, tuple(ids), client, then)
        asker = Asker(client=client, in_hand=lambda: self._in_hand[client])
        made = await self._flights.ask(key, work, asker)
        if made.own:
            return made.result
        return replace(made.result, queue=time.perf_counter() - started, encode=0.0)

    async def warm_up(self, longest: int) -> None:
        """Warms up the inner encoder; keeps none of these encodings."""
        await self._inner.warm_up(longest)

    def close(self) -> None:
        """Cancels texts that are being encoded, and ends the inner encoder."""
        self._flights.cancel()
        self._inner.close()

    async def _encode(
        self, key: bytes, ids: tuple[int, ...], client: str, then: Then | None
    ) -> TextEncoding:
        self._in_hand[client] += 1
        try:
            made = await self._inner.encode(ids, client, then)
        finally:
            self._in_hand[client] -= 1
            if not self._in_hand[client]:
                del self._in_hand[client]
        states = None if made.states is None else _frozen(made.states)
        made = replace(made, vector=_frozen(made.vector), states=states)
        self._kept.put(key, replace(made, queue=0.0, encode=0.0), _size(key, made))
        return made


def _lack(error: BaseException) -> Lack:
    """Encoders share fairly among clients: one may be refused where another is not."""
    return Lack.SHARE if isinstance(error, OverloadedError) else Lack.NOTHING


def _key(ids: Sequence[int]) -> bytes:
    """Four bytes a token; a tuple of numbers would take forty."""
    return array("i", ids).tobytes()


def _size(key: bytes, encoding: TextEncoding) -> int:
    """Bytes of an entry."""
    states = 0 if encoding.states is None else encoding.states.nbytes
    return encoding.vector.nbytes + states + len(key) + _OVERHEAD


def _frozen(values: NDArray[Value]) -> NDArray[Value]:
    """A copy that cannot be written to."""
    copy = values.copy()
    copy.setflags(write=False)
    return copy
