"""Metrics of an encoder node."""

from prometheus_client import CollectorRegistry

from winnow.telemetry.metrics import FAST, MetricFactory

ENCODER_STAGES = ("queue", "encode")


class EncoderMetrics:
    """Metrics of an encoder node."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._stage = make.histogram(
            "winnow_encoder_stage_seconds",
            "Seconds that a text waits (queue) and that its encoding takes (encode)",
            "stage",
            buckets=FAST,
        )
        for stage in ENCODER_STAGES:
            self._stage.labels(stage)
        self.ready = make.gauge(
            "winnow_encoder_ready", "1 while the encoder is loaded and served, else 0"
        )
        self.admission = make.counter(
            "winnow_encoder_admission",
            "Texts, by whether they were admitted: granted or refused",
            "result",
            values=("granted", "refused"),
        )
        self.in_hand = make.gauge(
            "winnow_encoder_texts_in_hand", "Texts that wait to be encoded or are being encoded"
        )
        self.seconds_per_text = make.gauge(
            "winnow_encoder_seconds_per_text",
            "Seconds per text while all threads encode",
        )

    def record_encoding(self, queue: float, encode: float) -> None:
        """Records the seconds that a text waited, and the seconds that its encoding took."""
        self._stage.labels("queue").observe(queue)
        self._stage.labels("encode").observe(encode)
