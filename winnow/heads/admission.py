"""Admission control for texts that heads are applied to: bounded, with fair shares for clients.

Counts the texts in flight by client. On a front, texts and questions take turns at the encoder, so
the bound also limits how many texts a question waits for.
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
    """Metrics of admission."""

    texts: Gauge
    """Texts in flight."""
    refusals: Counter


class TextAdmission:
    """Admits texts, or refuses them."""

    def __init__(
        self,
        max_texts: int,
        metrics: TextMetrics,
        clock: Clock = time.monotonic,
        retry_after: float = 0.1,
    ) -> None:
        """`max_texts`: limit of texts in flight; `retry_after`: seconds, for refused callers."""
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

        A request is always admitted if no text is in flight. Raises OverloadedError if there would
        be too many texts, or more than the client's fair share.
        """
        room = self._shares.room(client, self._max_texts, self._max_texts, texts)
        if self.in_flight and room < texts:
            self._shares.refuse(client, texts)
            self._metrics.refusals.inc()
            raise OverloadedError(
                f"{are(self.in_flight, 'text')} in flight, of at most {self._max_texts}, and no "
                f"client gets more than its share: there is no room for {texts} more; try again",
                self._retry_after,
            )
        self._shares.take(client, texts)
        self._metrics.texts.set(self.in_flight)
        try:
            yield
        finally:
            self._shares.release(client, texts)
            self._metrics.texts.set(self.in_flight)
