"""Remembers the states of the windows of passages that were read, within a budget of bytes.

States depend on nothing but the tokens of a window. So remembered states give the same logits as
computed ones, bit for bit. The key is a digest of the tokens and of the tenant of the caller: a
shared entry would tell a tenant which texts others have read.
"""

from array import array
from hashlib import blake2b
from threading import Lock

from winnow.inference.stop_signal import StopSignal
from winnow.policy.byte_bounded_lru import NO_OBSERVER, ByteBoundedLru, CacheObserver
from winnow.reading.lower_layers import LowerLayers, PassageWindow
from winnow.reading.passage_states import PassageStates

_DIGEST_BYTES = 16
_ENTRY_BYTES = 500
"""Estimated bytes of an entry beside the values of its arrays."""


class StatesCache:
    """The most recently used states of windows. Safe to use from several threads."""

    def __init__(
        self, lower: LowerLayers, budget: int, metrics: CacheObserver = NO_OBSERVER
    ) -> None:
        """`lower` computes states that are not remembered. `budget` is a number of bytes."""
        self._lower, self._metrics = lower, metrics
        self._states = ByteBoundedLru[bytes, PassageStates](budget, metrics)
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Size of all remembered states."""
        return self._states.bytes

    def window_states(
        self, window: PassageWindow, stop: StopSignal | None = None
    ) -> tuple[PassageStates, bool]:
        """Returns the states of a window, and whether they were remembered.

        Raises StoppedError if `stop` was set before the states were computed.
        """
        key = _key(window)
        with self._lock:
            found = self._states.get(key)
            self._metrics.count_lookup("miss" if found is None else "hit")
        if found is not None:
            return found, True
        states = self._lower.window_states(window, stop)
        size = states.levels.nbytes + states.scales.nbytes + _ENTRY_BYTES
        with self._lock:
            self._states.put(key, states, size)
        return states, False


def _key(window: PassageWindow) -> bytes:
    tenant = blake2b(window.tenant.encode(), digest_size=_DIGEST_BYTES).digest()
    ids = array("I", window.ids).tobytes()
    return blake2b(ids, digest_size=_DIGEST_BYTES, key=tenant).digest()
