"""A `TextEncoder` that caches the encodings of another encoder.

Token ids are the key, so texts that differ only in case or spaces share an entry. (Roblox' BERT
service has 40 % hits with such a cache.)
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

from winnow import caller
from winnow.domain.question import QuestionTokens
from winnow.errors import OverloadedError
from winnow.policy.attempts import Lack, SingleFlightCaller
from winnow.policy.byte_bounded_lru import NO_OBSERVER, ByteBoundedLru, CacheObserver
from winnow.single_flight import SingleFlight
from winnow.text.encoder import OnEncoded, TextEncoder, TextEncoding

_OVERHEAD = 512
"""Memory of an entry in bytes, without its arrays and its key, measured with `tracemalloc`."""
Value = TypeVar("Value", bound=np.generic)


class CachedTextEncoder:
    """Caches the most recently used encodings; concurrent calls for a text share one encoding."""

    def __init__(
        self,
        inner: TextEncoder,
        budget: int,
        metrics: CacheObserver = NO_OBSERVER,
    ) -> None:
        """`budget`: bytes of all cached encodings; 0 disables the cache."""
        self._inner, self._count = inner, metrics.count_lookup
        self._has_tokens = False
        """Whether the inner encoder has returned token vectors. Encodings without token vectors are
        then of encoder servers of an older version, and are not used again.
        """
        self._cache = ByteBoundedLru[bytes, TextEncoding](budget, metrics)
        self._flights = SingleFlight[bytes, TextEncoding](lack_of_error=_lack_of_error)
        self._in_flight = Counter[str]()
        """Number of texts at the inner encoder, by client."""

    async def encode(
        self, ids: Sequence[int], client: str = "", on_encoded: OnEncoded | None = None
    ) -> TextEncoding:
        """Returns the cached encoding, or a new one. Its arrays are read-only.

        Clients that wait for the same text get it at the earliest turn of any of them. If the
        encoder refuses one of these clients, the others keep waiting.
        """
        key = _key(ids, caller.tenant())
        cached = self._cache.get(key)
        if cached is not None and (cached.tokens is not None or not self._has_tokens):
            self._count("hit")
            return cached
        self._count("hit" if key in self._flights else "miss")
        started = time.perf_counter()
        work = partial(self._encode, key, tuple(ids), client, on_encoded)
        asking = SingleFlightCaller(client=client, work_in_flight=lambda: self._in_flight[client])
        made = await self._flights.ask(key, work, asking)
        if made.own:
            return made.result
        return replace(made.result, queue=time.perf_counter() - started, encode=0.0)

    async def warm_up(self, longest: int) -> None:
        """Warms up the inner encoder, without caching."""
        await self._inner.warm_up(longest)

    def close(self) -> None:
        """Cancels encodings in flight, and closes the inner encoder."""
        self._flights.cancel()
        self._inner.close()

    async def _encode(
        self, key: bytes, ids: tuple[int, ...], client: str, on_encoded: OnEncoded | None
    ) -> TextEncoding:
        self._in_flight[client] += 1
        try:
            encoding = await self._inner.encode(ids, client, on_encoded)
        finally:
            self._in_flight[client] -= 1
            if not self._in_flight[client]:
                del self._in_flight[client]
        states = None if encoding.states is None else _read_only(encoding.states)
        tokens = None
        if encoding.tokens is not None:
            levels, weights = encoding.tokens.levels, encoding.tokens.weights
            tokens = QuestionTokens(_read_only(levels), _read_only(weights))
        vector = _read_only(encoding.vector)
        encoding = replace(encoding, vector=vector, states=states, tokens=tokens)
        self._has_tokens = self._has_tokens or tokens is not None
        self._cache.put(key, replace(encoding, queue=0.0, encode=0.0), _size(key, encoding))
        return encoding


def _lack_of_error(error: BaseException) -> Lack:
    """An overloaded encoder refuses clients by their share, so another client may be admitted."""
    return Lack.SHARE if isinstance(error, OverloadedError) else Lack.NOTHING


def _key(ids: Sequence[int], tenant: str) -> bytes:
    """Packs token ids into four bytes each; in a tuple they would take forty.

    Tenants share no entry: its time would tell a tenant what others ask.
    """
    return array("i", ids).tobytes() + tenant.encode()


def _size(key: bytes, encoding: TextEncoding) -> int:
    """Returns the bytes that an entry takes."""
    states = 0 if encoding.states is None else encoding.states.nbytes
    tokens = encoding.tokens
    token_vectors = 0 if tokens is None else tokens.levels.nbytes + tokens.weights.nbytes
    return encoding.vector.nbytes + states + token_vectors + len(key) + _OVERHEAD


def _read_only(values: NDArray[Value]) -> NDArray[Value]:
    """Returns a read-only copy."""
    copy = values.copy()
    copy.setflags(write=False)
    return copy
