"""Admission control of an encoder node.

A text that cannot meet its deadline is refused immediately, so that the caller has time to try
another node.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from winnow.deadline import Clock, Deadline
from winnow.encoder_node.metrics import EncoderMetrics
from winnow.errors import OverloadedError
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.policy.pace import Pace
from winnow.quoting import are
from winnow.telemetry.tracing.span import span
from winnow.text.encoder import TextEncoder, TextEncoding

_HALF_LIFE = 2.0
"""Seconds after which the weight of a measured speed has halved."""


class AdmittedEncoder:
    """An encoder that refuses texts that it cannot encode in time."""

    def __init__(
        self, inner: TextEncoder, max_texts: int, clock: Clock, metrics: EncoderMetrics
    ) -> None:
        """`max_texts` limits the number of texts that wait."""
        self._pace = Pace(_HALF_LIFE, clock)
        settings = LoadSettings.all_or_nothing(max_texts)
        self._load = ReadLoad(settings, clock, lambda: self._pace.seconds)
        self._inner, self._metrics = inner, metrics

    async def encode(self, ids: Sequence[int], deadline: Deadline, client: str) -> TextEncoding:
        """Encodes a text.

        Raises OverloadedError if it would miss its deadline, or too many texts wait. Raises
        DeadlineExceededError if the deadline has passed.
        """
        with self._admitted(deadline, client):
            with span("encode", {"winnow.tokens": len(ids)}) as step:
                encoding = await self._inner.encode(ids, client)
                step.set("winnow.queue_ms", encoding.queue * 1e3)
            self._pace.done(1)
        self._metrics.record_encoding(encoding.queue, encoding.encode)
        return encoding

    @contextmanager
    def _admitted(self, deadline: Deadline, client: str) -> Iterator[None]:
        if not self._load.reads_in_flight:
            self._pace.begin()
        try:
            ticket = self._load.admit(1, deadline.left(), client)
        except OverloadedError as error:
            self._metrics.admission.labels("refused").inc()
            raise OverloadedError(
                f"{are(self._load.reads_in_flight, 'text')} waiting already, and one more "
                "would be late or exceed the client's fair share; try again in "
                f"{error.retry_after:.2f} s",
                error.retry_after,
            ) from error
        self._metrics.admission.labels("granted").inc()
        self._metrics.in_hand.set(self._load.reads_in_flight)
        try:
            yield
        finally:
            self._load.release(ticket)
            self._metrics.in_hand.set(self._load.reads_in_flight)
            self._metrics.seconds_per_text.set(self._pace.seconds or 0.0)
