"""Admission of texts that heads are applied to: a bounded number, with clients sharing fairly.

Knows how many texts are in hand and whose they are; does not know what is done with them. On a
front, texts and questions share the encoder, which takes turns between them: so no question waits
for more than this many texts.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from prometheus_client import Counter, Gauge

from winnow.deadline import Clock
from winnow.errors import OverloadedError
from winnow.policy.fairness import FairShares
from winnow.policy.load import LoadSettings
from winnow.quoting import are


class TextMetrics(Protocol):
    """Metrics of texts in hand."""

    texts: Gauge
    refusals: Counter


class TextAdmission:
    """Admits texts, or refuses them."""

    def __init__(
        self,
        most: int,
        metrics: TextMetrics,
        clock: Clock = time.monotonic,
        retry_after: float = 0.1,
    ) -> None:
        """`most`: texts in hand; `retry_after`: seconds that a refused caller is told to wait."""
        self._most, self._metrics, self._retry_after = most, metrics, retry_after
        shared = LoadSettings()
        self._places = FairShares(shared.kept, shared.here_for, shared.hungry_for, clock)

    @property
    def in_flight(self) -> int:
        """Number of texts in flight."""
        return self._places.total

    @contextmanager
    def enter(self, texts: int, client: str) -> Iterator[None]:
        """Counts the texts of a request while they are in hand; if none is in hand, admits any.

        Raises:
            OverloadedError: they would be too many, or take what other clients need.

        """
        room = self._places.room(client, self._most, self._most, texts)
        if self.in_flight and room < texts:
            self._places.refuse(client, texts)
            self._metrics.refusals.inc()
            raise OverloadedError(
                f"{are(self.in_flight, 'text')} in hand, of at most {self._most}, and no client "
                f"gets more than its share: there is no room for {texts} more; try again",
                self._retry_after,
            )
        self._places.take(client, texts)
        self._metrics.texts.set(self.in_flight)
        try:
            yield
        finally:
            self._places.give_back(client, texts)
            self._metrics.texts.set(self.in_flight)
