"""The queue of finished spans. A thread sends them to a collector, which may be slow or down.

The end of a span only adds it to the bounded queue, which neither waits nor fails. Does not know
how spans are sent.
"""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from winnow.telemetry.tracing.recorded import RecordedSpan

_log = structlog.get_logger("winnow.traces")
_MAX_WAITING = 8_192
"""Maximum number of waiting spans, which take about 4 MB."""
_BATCH_SIZE = 100
"""Maximum number of spans per export. Converting them delays other threads by half a millisecond.
"""
_BATCH_SECONDS = 0.2
"""Seconds that a span waits for other spans, so that the thread does not wake for each one."""
_EXIT_SECONDS = 0.5
"""Seconds for the thread to end after its exporter is closed."""


class SpanExporter(Protocol):
    """Sends spans to a collector; `OtlpExporter` implements it."""

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        """Sends spans; returns whether the collector accepted them. May block for seconds."""

    def close(self) -> None:
        """Cancels a running export; later exports fail immediately."""


class SpanQueue:
    """Sends spans in one thread; counts the spans that cannot be sent."""

    def __init__(
        self,
        exporter: SpanExporter,
        max_waiting: int = _MAX_WAITING,
        batch_size: int = _BATCH_SIZE,
        batch_seconds: float = _BATCH_SECONDS,
    ) -> None:
        """Starts the thread. At most `max_waiting` spans wait; `batch_size` are sent at once."""
        self._exporter, self._max_waiting, self._batch_size = exporter, max_waiting, batch_size
        self._batch_seconds = batch_seconds
        self._spans: queue.SimpleQueue[RecordedSpan | None] = queue.SimpleQueue()
        # reentrant: a garbage collection within the lock may end a span, too
        self._counting = threading.RLock()
        self.sent = self.dropped = 0
        """Numbers of spans that the collector accepted, and of spans that were lost."""
        self._closed = False
        # a daemon, so that the process can end while an export hangs
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def put(self, span: RecordedSpan) -> None:
        """Adds a span; drops it if too many wait. Neither blocks nor raises."""
        if self._closed or self._spans.qsize() >= self._max_waiting:
            self._count(dropped=1)
        else:
            self._spans.put(span)

    def close(self, seconds: float) -> None:
        """Sends the waiting spans, for at most `seconds`; later spans are dropped."""
        self._closed = True
        self._spans.put(None)
        self._thread.join(seconds)
        self._exporter.close()
        self._thread.join(_EXIT_SECONDS)

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                accepted = self._exporter.export(batch)
            except Exception as error:  # noqa: BLE001 (the service continues)
                _log.error("traces cannot be sent", error=str(error), exc_info=error)
                accepted = False
            self._count(sent=len(batch)) if accepted else self._count(dropped=len(batch))

    def _next_batch(self) -> list[RecordedSpan]:
        """Waits for spans and returns a batch; an empty list after `close`."""
        first = self._spans.get()
        if first is None:
            return []
        if self._spans.qsize() + 1 < self._batch_size and not self._closed:
            time.sleep(self._batch_seconds)
        batch = [first]
        while len(batch) < self._batch_size and self._spans.qsize():
            span = self._spans.get()
            if span is None:
                self._spans.put(None)  # the end marker comes after this batch
                break
            batch.append(span)
        return batch

    def _count(self, sent: int = 0, dropped: int = 0) -> None:
        with self._counting:
            self.sent += sent
            self.dropped += dropped
