"""The queue of spans for a collector that is fast, slow, full or gone."""

import threading
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs
from tenacious import LONG, until
from traced import Traced

from winnow.telemetry.tracing.queue import SpanQueue
from winnow.telemetry.tracing.recorded import RecordedSpan


class FakeExporter:
    """Keeps what it is given; hangs until it is closed or let go on."""

    def __init__(self, hangs: bool = False) -> None:
        self.batches: list[list[RecordedSpan]] = []
        self.hanging, self.go_on = threading.Event(), threading.Event()
        self.takes = True
        self.error: Exception | None = None
        if not hangs:
            self.go_on.set()

    def export(self, spans: Sequence[RecordedSpan]) -> bool:
        self.hanging.set()
        self.go_on.wait(LONG)
        if self.error is not None:
            raise self.error
        self.batches.append(list(spans))
        return self.takes

    def close(self) -> None:
        self.takes = False
        self.go_on.set()


def spans(count: int) -> list[RecordedSpan]:
    traced = Traced()
    for _ in range(count):
        with traced.begin():
            pass
    return traced


def opened(exporter: FakeExporter, most: int = 100) -> SpanQueue:
    return SpanQueue(exporter, most, batch_size=8, batch_seconds=0.0)


def test_all_are_sent_in_their_order_a_few_at_a_time() -> None:
    exporter, made = FakeExporter(), spans(30)
    queue = opened(exporter)
    for each in made:
        queue.put(each)
    queue.close(LONG)
    assert [each for batch in exporter.batches for each in batch] == made
    assert max(map(len, exporter.batches)) <= 8
    assert (queue.sent, queue.dropped) == (30, 0)


def test_those_that_come_together_are_sent_together() -> None:
    exporter = FakeExporter(hangs=True)
    queue = opened(exporter)
    for each in spans(1):
        queue.put(each)
    assert exporter.hanging.wait(LONG)
    for each in spans(16):
        queue.put(each)
    exporter.go_on.set()
    queue.close(LONG)
    assert [len(batch) for batch in exporter.batches] == [1, 8, 8]


def test_while_the_collector_hangs_nobody_waits_and_those_that_do_not_fit_are_counted() -> None:
    exporter = FakeExporter(hangs=True)
    queue = opened(exporter, most=10)
    queue.put(spans(1)[0])
    assert exporter.hanging.wait(LONG)
    for each in spans(50):
        queue.put(each)
    assert queue.dropped == 40
    exporter.go_on.set()
    until(lambda: queue.sent == 11, LONG)
    queue.close(LONG)


def test_those_that_are_refused_are_counted_and_later_ones_are_sent() -> None:
    exporter = FakeExporter()
    exporter.takes = False
    queue = opened(exporter)
    for each in spans(3):
        queue.put(each)
    until(lambda: queue.dropped == 3, LONG)
    exporter.takes = True
    for each in spans(2):
        queue.put(each)
    until(lambda: queue.sent == 2, LONG)
    queue.close(LONG)


def test_an_exporter_that_raises_is_logged_and_asked_again() -> None:
    exporter = FakeExporter()
    exporter.error = ZeroDivisionError("oops")
    queue = opened(exporter)
    with capture_logs() as logged:
        queue.put(spans(1)[0])
        until(lambda: queue.dropped == 1, LONG)
    assert [line["error"] for line in logged] == ["oops"]
    exporter.error = None
    queue.put(spans(1)[0])
    until(lambda: queue.sent == 1, LONG)
    queue.close(LONG)


@pytest.mark.parametrize("most", [1, 100])
def test_a_collector_that_hangs_does_not_hold_up_the_end(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.telemetry.tracing.queue._EXIT_SECONDS", LONG)
    exporter = FakeExporter(hangs=True)
    queue = opened(exporter, most)
    for each in spans(20):
        queue.put(each)
    assert exporter.hanging.wait(LONG)
    queue.close(seconds=0.01)
    assert not queue._thread.is_alive()
    assert queue.sent + queue.dropped == 20


def test_what_ends_after_the_end_is_dropped() -> None:
    queue = opened(FakeExporter())
    queue.close(LONG)
    queue.put(spans(1)[0])
    assert queue.dropped == 1
