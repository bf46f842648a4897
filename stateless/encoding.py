"""Questions to encodings: tokenise, look in the cache, else encode in a thread.

Knows the bundle's limit on length; the cache's key is the token ids, so that spelling that the
tokenizer does not see (case, spaces) is one entry (as in Roblox' BERT service, 40 % hits).
"""

import asyncio
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stateless.metrics import FrontMetrics
from winnow.bundle import Bundle
from winnow.domain.answered import Timings
from winnow.domain.question import EncodedQuestion
from winnow.errors import InvalidRequestError, Violation
from winnow.inference.encoder import Encoder
from winnow.text.tokenizer import Tokenizer

_SPECIAL = 2
_Key = tuple[int, ...]
_Vector = NDArray[np.float32]


class EncodingCache:
    """The most recently used encodings."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._vectors: OrderedDict[_Key, _Vector] = OrderedDict()

    def get(self, key: _Key) -> _Vector | None:
        """The vector of these token ids, if it is kept."""
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def put(self, key: _Key, vector: _Vector) -> None:
        """Keeps a vector, and forgets the one longest unused if there are too many."""
        self._vectors[key] = vector
        while len(self._vectors) > self._entries:
            self._vectors.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded question, and whether its end was cut off."""

    question: EncodedQuestion
    truncated: bool


class QuestionEncoder:
    """Encodes questions, each by itself, so that none depends on who else is asking."""

    def __init__(
        self,
        bundle: Bundle,
        tokenizer: Tokenizer,
        encoder: Encoder,
        cache: EncodingCache,
        threads: int,
        metrics: FrontMetrics,
    ) -> None:
        self._tokenizer, self._encoder, self._cache = tokenizer, encoder, cache
        self._most = bundle.manifest.encoder.max_question_tokens - _SPECIAL
        self._fingerprint = bundle.manifest.fingerprint
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="encode")
        self._metrics = metrics

    async def encode(self, text: str, timings: Timings) -> Encoded:
        """The question's encoding; writes what it took into `timings`.

        Raises:
            InvalidRequestError: the question has no word in it.

        """
        started = time.perf_counter()
        ids = self._tokenizer.tokenise(text).ids
        timings.tokenise = time.perf_counter() - started
        if not ids:
            raise InvalidRequestError(Violation("question", "has no word in it"))
        key = ids[: self._most]
        vector = self._cache.get(key)
        self._metrics.cache.labels("miss" if vector is None else "hit").inc()
        if vector is None:
            vector = await self._run(key, timings)
            self._cache.put(key, vector)
        question = EncodedQuestion(text, key, vector, self._fingerprint)
        return Encoded(question, len(ids) > self._most)

    def warm_up(self) -> None:
        """Encodes once at several lengths: first runs at a new shape are slow."""
        for length in (1, 8, 16, 32, self._most):
            self._encoder.question((1000,) * length)

    def close(self) -> None:
        """Waits for the threads to end."""
        self._pool.shutdown(cancel_futures=True)

    async def _run(self, key: _Key, timings: Timings) -> _Vector:
        submitted = time.perf_counter()

        def work() -> tuple[float, _Vector]:
            return time.perf_counter(), self._encoder.question(key)

        began, vector = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        timings.queue += began - submitted
        timings.encode = time.perf_counter() - began
        return vector
