"""The queue of finished spans, which a thread sends to a collector that may be slow or gone.

Ending a span only puts it into the bounded queue, which neither waits nor fails. Knows nothing of
how spans travel.
"""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from winnow.telemetry.tracing.recorded import RecordedSpan

_log = structlog.get_logger("winnow.traces")
_MOST = 8_192
"""Most waiting spans: some 4 MB."""
_AT_ONCE = 100
"""Spans sent together; converting them delays other threads by about half a millisecond."""
_PAUSE = 0.2
"""Seconds that a span waits for others, so that the thread does not run for each one."""
_LAST = 0.5
"""Seconds that a thread gets to end once its exporter is closed."""


class Exporter(Protocol):
    """Sends spans to a collector, as `winnow.telemetry.tracing.otlp` does."""

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        """Whether the collector took the spans; may block for some seconds."""

    def close(self) -> None:
        """Ends a running export; later ones fail at once."""


class SpanQueue:
    """Sends spans in one thread; counts the spans that cannot be sent."""

    def __init__(
        self, exporter: Exporter, most: int = _MOST, at_once: int = _AT_ONCE, pause: float = _PAUSE
    ) -> None:
        """Begins to send; `most` spans may wait, `at_once` are sent together."""
        self._exporter, self._most, self._at_once = exporter, most, at_once
        self._pause = pause
        self._spans: queue.SimpleQueue[RecordedSpan | None] = queue.SimpleQueue()
        # a thread may enter twice: garbage collection in between may end a span, too
        self._counting = threading.RLock()
        self.sent = self.dropped = 0
        """Spans that the collector took, and those that it did not."""
        self._closed = False
        # a daemon: the process ends also while an export hangs
        self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
        self._thread.start()

    def put(self, span: RecordedSpan) -> None:
        """Adds a span; drops it if too many wait. Neither blocks nor raises."""
        if self._closed or self._spans.qsize() >= self._most:
            self._count(dropped=1)
        else:
            self._spans.put(span)

    def close(self, patience: float) -> None:
        """Sends the waiting spans, for `patience` seconds at most; later ones are dropped."""
        self._closed = True
        self._spans.put(None)
        self._thread.join(patience)
        self._exporter.close()
        self._thread.join(_LAST)

    def _run(self) -> None:
        while batch := self._next():
            try:
                taken = self._exporter.export(batch)
            except Exception as error:  # noqa: BLE001 (the service goes on, and so do later ones)
                _log.error("traces cannot be sent", error=str(error), exc_info=error)
                taken = False
            self._count(sent=len(batch)) if taken else self._count(dropped=len(batch))

    def _next(self) -> list[RecordedSpan]:
        """Waits for some; none at the end."""
        first = self._spans.get()
        if first is None:
            return []
        if self._spans.qsize() + 1 < self._at_once and not self._closed:
            time.sleep(self._pause)
        batch = [first]
        while len(batch) < self._at_once and self._spans.qsize():
            following = self._spans.get()
            if following is None:
                self._spans.put(None)  # the end comes after these
                break
            batch.append(following)
        return batch

    def _count(self, sent: int = 0, dropped: int = 0) -> None:
        with self._counting:
            self.sent += sent
            self.dropped += dropped
