"""Recent usage by key, counted in turns.

Knows keys; does not know what a turn is for. A turn counts half after every half-life, as in the
usage-decay schedulers of Unix (Epema, "Decay-usage scheduling in multiprocessors", 1998). Time is
the number of turns of all keys. So no clock is needed, and nothing fades while all is idle.
"""

from collections.abc import Iterable

_LARGE = 1e9
"""Weight of a turn at which all weights are scaled down: floats have no more than 308 digits."""
_FORGOTTEN = 1e-3
"""Turns below which a key is as unknown as a new one."""

_SHARE, _TURNS = 0.9, 2
"""A key used clearly less than others if it used `_TURNS` turns less than this share of theirs.
So none of equals is favoured."""


class Usage:
    """Turns that each key had of late, in bounded memory."""

    def __init__(self, half_life: float = 256.0, most: int = 1_000) -> None:
        """`half_life`: turns of all keys after which one counts half; `most`: most known keys.
        Further keys replace those that had no turn for longest.
        """
        self._growth, self._most = float(2 ** (1 / half_life)), most
        self._used: dict[str, float] = {}
        """Usage, in the order of latest turns. Later turns weigh more, instead of earlier less."""
        self._weight = 1.0
        """Weight of the next turn."""
        self._top = 0.0
        """The greatest usage of a key, also of one that was forgotten."""

    def __len__(self) -> int:
        """Number of known keys."""
        return len(self._used)

    def add(self, key: str) -> None:
        """Counts a turn. A new key then counts as one that used as much as any other, so that a
        client gains nothing by a new name.
        """
        used = self._used.pop(key, None)
        now = max(self._top, self._weight) if used is None else used + self._weight
        self._used[key] = now
        self._top = max(self._top, now)
        if len(self._used) > self._most:
            del self._used[next(iter(self._used))]
        self._weight *= self._growth
        if self._weight > _LARGE:
            self._make_small()

    def __contains__(self, key: str) -> bool:
        """Whether a key is known."""
        return key in self._used

    def least(self, keys: Iterable[str]) -> str:
        """The known key that used least, the first of several."""
        return min(keys, key=self._used.__getitem__)

    def modest(self, key: str) -> bool:
        """Whether a known key used clearly less than others did."""
        return self._used[key] + _TURNS * self._weight <= _SHARE * self._top

    def _make_small(self) -> None:
        small = {key: used / self._weight for key, used in self._used.items()}
        self._used = {key: used for key, used in small.items() if used >= _FORGOTTEN}
        self._top /= self._weight
        self._weight = 1.0
