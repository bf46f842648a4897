"""Recent usage by key: the number of turns of the key. Older turns weigh less.

The caller decides what a turn is. The weight of a turn halves with every half-life, as in the
usage-decay schedulers of Unix (Epema, "Decay-usage scheduling in multiprocessors", 1998). The
half-life is a number of turns of all keys. So no clock is needed, and usage does not decay without
turns.
"""

from collections.abc import Iterable

_MAX_WEIGHT = 1e9
"""Weight of a turn at which all weights are scaled down, before a float overflows."""
_MIN_USAGE = 1e-3
"""Usage in turns below which a key is forgotten."""

_SHARE, _TURNS = 0.9, 2
"""A key is light if its usage is at least `_TURNS` turns below `_SHARE` of the greatest usage.

So no key is light if all are equal.
"""


class Usage:
    """The recent turns of each key, in bounded memory."""

    def __init__(self, half_life: float = 256.0, max_keys: int = 1_000) -> None:
        """`half_life`: number of turns, of all keys, after which a turn counts half.

        `max_keys`: maximum number of known keys. A further key replaces the key whose last turn is
        oldest.
        """
        self._growth, self._max_keys = float(2 ** (1 / half_life)), max_keys
        self._usage_by_key: dict[str, float] = {}
        """Usage of each key, ordered by its last turn.

        Instead of reducing the weight of old turns, each new turn weighs more.
        """
        self._weight = 1.0
        """Weight of the next turn."""
        self._max_usage = 0.0
        """The greatest usage of any key, even if the key is forgotten."""

    def __len__(self) -> int:
        """Number of known keys."""
        return len(self._usage_by_key)

    def add(self, key: str) -> None:
        """Counts a turn.

        A new key gets the greatest usage of any key, so clients gain nothing from using new keys.
        """
        used = self._usage_by_key.pop(key, None)
        usage = max(self._max_usage, self._weight) if used is None else used + self._weight
        self._usage_by_key[key] = usage
        self._max_usage = max(self._max_usage, usage)
        if len(self._usage_by_key) > self._max_keys:
            del self._usage_by_key[next(iter(self._usage_by_key))]
        self._weight *= self._growth
        if self._weight > _MAX_WEIGHT:
            self._rescale()

    def __contains__(self, key: str) -> bool:
        """Whether a key is known."""
        return key in self._usage_by_key

    def least_used(self, keys: Iterable[str]) -> str:
        """Returns the known key with the least usage; the first one if several are equal."""
        return min(keys, key=self._usage_by_key.__getitem__)

    def is_light(self, key: str) -> bool:
        """Whether the usage of a known key is clearly less than the greatest usage."""
        return self._usage_by_key[key] + _TURNS * self._weight <= _SHARE * self._max_usage

    def _rescale(self) -> None:
        small = {key: used / self._weight for key, used in self._usage_by_key.items()}
        self._usage_by_key = {key: used for key, used in small.items() if used >= _MIN_USAGE}
        self._max_usage /= self._weight
        self._weight = 1.0
