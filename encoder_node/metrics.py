"""Metrics of an encoder node."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from winnow.telemetry.buckets import FAST
from winnow.telemetry.metrics import counted

ENCODER_STAGES = ("queue", "encode")


class EncoderMetrics:
    """What an encoder node does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._stage = Histogram(
            "winnow_encoder_stage_seconds",
            "Time that a text waits, and that its run takes",
            ("stage",),
            buckets=FAST,
            registry=registry,
        )
        for stage in ENCODER_STAGES:
            self._stage.labels(stage)
        self.ready = Gauge(
            "winnow_encoder_ready",
            "1 while the encoder is loaded and served, else 0",
            registry=registry,
        )
        self.admission = Counter(
            "winnow_encoder_admission",
            "Texts by whether they were let in",
            ("result",),
            registry=registry,
        )
        counted(self.admission, last=("granted", "refused"))
        self.in_hand = Gauge(
            "winnow_encoder_texts_in_hand",
            "Texts that wait to be encoded or are being encoded",
            registry=registry,
        )
        self.seconds_per_text = Gauge(
            "winnow_encoder_seconds_per_text",
            "Seconds per text while encoding, all threads together",
            registry=registry,
        )

    def encoded(self, queue: float, encode: float) -> None:
        """Counts a text that waited and was encoded for so many seconds."""
        self._stage.labels("queue").observe(queue)
        self._stage.labels("encode").observe(encode)
