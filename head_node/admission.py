"""Where texts are let in, a bounded number, with clients sharing fairly.

Knows how many texts are in hand and whose they are; does not know what is done with them.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from winnow.deadline import Clock
from winnow.errors import OverloadedError
from winnow.head_node.metrics import HeadNodeMetrics
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings
from winnow.quoting import are

_RETRY_AFTER = 0.05
"""Seconds: texts take milliseconds."""


class TextPlaces:
    """Places for texts."""

    def __init__(self, most: int, metrics: HeadNodeMetrics, clock: Clock) -> None:
        self._most, self._metrics = most, metrics
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)

    @contextmanager
    def enter(self, client: str) -> Iterator[None]:
        """Counts a text of `client`; raises OverloadedError if there is no place for it."""
        if self._places.room(client, self._most, self._most) < 1:
            self._places.refuse(client, 1)
            self._metrics.refusals.inc()
            raise OverloadedError(
                f"{are(self._places.total, 'text')} in hand already, of at most {self._most}, and "
                f"no client gets more than its share; try again in {_RETRY_AFTER:g} s",
                _RETRY_AFTER,
            )
        self._places.take(client, 1)
        self._metrics.texts.set(self._places.total)
        try:
            yield
        finally:
            self._places.give_back(client, 1)
            self._metrics.texts.set(self._places.total)
