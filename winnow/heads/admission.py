"""Admission control for the texts of predictions: a limit, with fair shares for clients.

Counts the texts in flight by client. On a front node, texts and questions take turns at the
encoder, so the limit also bounds the number of texts that a question waits for.
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
from winnow.quoting import are, many


class TextAdmissionMetrics(Protocol):
    """The metrics that `TextAdmission` updates."""

    texts: Gauge
    """Number of texts in flight."""
    refusals: Counter
    """Number of refused requests."""


class TextAdmission:
    """Admits the texts of requests, or refuses them under overload."""

    def __init__(
        self,
        max_texts: int,
        metrics: TextAdmissionMetrics,
        clock: Clock = time.monotonic,
        retry_after: float = 0.1,
    ) -> None:
        """`max_texts`: limit of texts in flight; `retry_after`: seconds, sent with a refusal."""
        self._max_texts, self._metrics, self._retry_after = max_texts, metrics, retry_after
        defaults = LoadSettings()
        self._shares = FairShares(
            defaults.reserved_share, defaults.presence_seconds, defaults.refusal_seconds, clock
        )

    @property
    def in_flight(self) -> int:
        """Number of admitted texts whose requests have not ended."""
        return self._shares.total

    @contextmanager
    def enter(self, texts: int, client: str) -> Iterator[None]:
        """Admits the texts of a request for the duration of the block.

        A request is always admitted if no text is in flight. Otherwise raises OverloadedError if
        the texts would exceed the limit, or the client's fair share.
        """
        room = self._shares.room(client, self._max_texts, self._max_texts, texts)
        if self.in_flight and room < texts:
            self._shares.refuse(client, texts)
            self._metrics.refusals.inc()
            limit = (
                f"the limit of all clients is {self._max_texts}"
                if self.in_flight + texts > self._max_texts
                else "the remaining room is reserved for other clients"
            )
            raise OverloadedError(
                f"no room for {many(texts, 'more text')}: {are(self.in_flight, 'text')} in flight, "
                f"and {limit}; try again",
                self._retry_after,
            )
        self._shares.take(client, texts)
        self._metrics.texts.set(self.in_flight)
        try:
            yield
        finally:
            self._shares.release(client, texts)
            self._metrics.texts.set(self.in_flight)
