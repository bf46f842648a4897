"""Token vectors that a node computed, and how many of them questions may compute."""

import threading
import time
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from winnow.deadline import Clock
from winnow.policy.byte_bounded_lru import MIB, ByteBoundedLru

_CACHE_BYTES = 256 * MIB
"""Limit of computed token vectors: those of some 58,000 passages of 134 tokens."""
_FULL_SHARE = 0.9
"""Share of the budget above which entries may have been evicted."""
_OVERHEAD = 300
"""Memory of a cached entry besides its vectors, in bytes."""
TokensKey = tuple[Hashable, str, int]
"""An opened shard, a passage id, and the sequence number of the write that put the passage."""
MAX_COMPUTED = 8
"""Passages a second whose token vectors questions may compute, which takes some 0.1 s of a core."""


class ComputedTokens:
    """Cache of computed token vectors, for all shards of a process. Safe to use from several
    threads.
    """

    def __init__(
        self,
        budget: int = _CACHE_BYTES,
        max_computed: int = MAX_COMPUTED,
        clock: Clock = time.monotonic,
    ) -> None:
        """`budget`: maximum bytes of entries. `max_computed`: passages a second for questions."""
        self._levels = ByteBoundedLru[TokensKey, NDArray[np.int8]](budget)
        self._full_at = _FULL_SHARE * budget
        self._lock = threading.Lock()
        self._max_computed, self._clock = max_computed, clock
        self._allowance, self._updated_at = float(max_computed), clock()

    def get(self, key: TokensKey) -> NDArray[np.int8] | None:
        """Returns the levels of a passage; None if they are not cached."""
        with self._lock:
            return self._levels.get(key)

    def put(self, key: TokensKey, levels: NDArray[np.int8]) -> None:
        """Caches the levels of a passage."""
        with self._lock:
            self._levels.put(key, levels, levels.nbytes + _OVERHEAD)

    def discard(self, shard: Hashable, upto: int | None = None) -> None:
        """Removes the token vectors of a shard's writes up to `upto`; None for all of them."""
        with self._lock:
            self._levels.discard(lambda key: key[0] is shard and (upto is None or key[2] <= upto))

    @property
    def is_full(self) -> bool:
        """Whether nearly all of the budget is used, so that token vectors may have been evicted."""
        with self._lock:
            return self._levels.bytes > self._full_at

    def admit(self, passages: int) -> bool:
        """Returns whether a question may compute the token vectors of this many passages now."""
        with self._lock:
            now = self._clock()
            refill = (now - self._updated_at) * self._max_computed
            self._allowance = min(self._allowance + refill, float(self._max_computed))
            self._updated_at = now
            if passages > self._allowance:
                return False
            self._allowance -= passages
            return True
