"""Where texts are let in for prediction, beside questions.

Knows how many texts are in hand and whose they are; does not know what is done with them. Texts and
questions share the encoder: it takes turns between those that ask and those that predict, so
neither waits for more than this many of the other.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from winnow.deadline import Clock
from winnow.errors import OverloadedError
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings
from winnow.quoting import are
from winnow.stateless.heads.metrics import HeadMetrics

_RETRY_AFTER = 0.1
"""Seconds."""


class TextAdmission:
    """Lets texts in."""

    def __init__(self, most: int, metrics: HeadMetrics, clock: Clock = time.monotonic) -> None:
        """`most`: texts in hand."""
        self._most, self._metrics = most, metrics
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)

    @property
    def inside(self) -> int:
        """Texts in hand."""
        return self._places.total

    @contextmanager
    def enter(self, texts: int, client: str) -> Iterator[None]:
        """Counts the texts of a request while they are in hand; with nothing in hand lets any in.

        Raises:
            OverloadedError: they would be too many, or take what other clients need.

        """
        room = self._places.room(client, self._most, self._most, texts)
        if self.inside and room < texts:
            self._places.refuse(client, texts)
            self._metrics.refusals.inc()
            raise OverloadedError(
                f"{are(self.inside, 'text')} in hand, of at most {self._most}, and no client gets "
                f"more than its share: there is no room for {texts} more; try again",
                _RETRY_AFTER,
            )
        self._places.take(client, texts)
        self._metrics.texts.set(self.inside)
        try:
            yield
        finally:
            self._places.give_back(client, texts)
            self._metrics.texts.set(self.inside)
