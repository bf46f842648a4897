"""Metrics of reading texts that callers send."""

from prometheus_client import CollectorRegistry

from winnow.domain.text_reading import ReadingTimings
from winnow.telemetry.metrics import COUNTS, FAST, MetricFactory


class TextReadingMetrics:
    """Metrics of the requests that are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._stage = make.histogram(
            "winnow_reader_stage_seconds",
            "Time of each stage of a request: tokenise, queue (until a thread is free) and read",
            "stage",
            buckets=FAST,
        )
        for stage in ("tokenise", "queue", "read"):
            self._stage.labels(stage)
        self.texts = make.histogram(
            "winnow_reader_request_texts", "Texts of one request", buckets=COUNTS
        )
        self.windows = make.counter(
            "winnow_reader_windows", "Windows of texts that were read; a long text has several"
        )
        self.windows_in_hand = make.gauge(
            "winnow_reader_windows_in_hand",
            "Windows that wait to be read or are being read; estimated by the length of the texts",
        )
        self.seconds_per_window = make.gauge(
            "winnow_reader_seconds_per_window", "Seconds per window while all threads read"
        )
        self.admission = make.counter(
            "winnow_reader_admission",
            "Requests by whether they were admitted: granted or refused",
            "result",
            values=("granted", "refused"),
        )

    def observe(self, timings: ReadingTimings) -> None:
        """Records the stages of a request."""
        for stage in ("tokenise", "queue", "read"):
            self._stage.labels(stage).observe(getattr(timings, stage))


class TextPoolMetrics:
    """Metrics of reader threads that read nothing but texts of callers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self.threads = make.gauge("winnow_reader_threads", "Number of reader threads")
        self.threads_busy = make.gauge("winnow_reader_threads_busy", "Busy reader threads")
        self.reads_stopped = make.counter(
            "winnow_reader_windows_stopped",
            "Windows that were not read because the deadline passed or the caller cancelled",
        )
        self.runs_ended = make.counter(
            "winnow_reader_runs_ended", "Windows whose reading was stopped before its end"
        )
