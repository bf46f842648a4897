"""Metrics of predictions. No label is made of what a caller sends."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from winnow.domain.predicted import PredictTimings
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    WinnowError,
)
from winnow.telemetry.buckets import FAST
from winnow.telemetry.metrics import counted

STAGES = ("queue", "tokenise", "encode", "heads")
_RESULTS: tuple[tuple[type[WinnowError], str], ...] = (
    (NotFoundError, "unknown"),
    (OverloadedError, "refused"),
    (DeadlineExceededError, "late"),
    (IdentityError, "other_encoder"),
)


class HeadMetrics:
    """What a front predicts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._stage = Histogram(
            "winnow_front_predict_stage_seconds",
            "Time of each stage of a request for predictions, its texts together",
            ("stage",),
            buckets=FAST,
            registry=registry,
        )
        self._predictions = Counter(
            "winnow_front_predictions",
            "Heads applied to texts and questions, by result: ok, unknown, refused, late, "
            "other_encoder or failed",
            ("result",),
            registry=registry,
        )
        counted(self._predictions, last=("ok", *(name for _, name in _RESULTS), "failed"))
        self.texts = Gauge(
            "winnow_front_texts_in_hand", "Texts that heads are applied to now", registry=registry
        )
        self.refusals = Counter(
            "winnow_front_predict_refusals",
            "Requests for predictions that were refused because too many texts were in hand",
            registry=registry,
        )

    def predicted(self, failure: WinnowError | None) -> None:
        """Counts a head applied to a text, or why it was not."""
        self._predictions.labels(_result(failure)).inc()

    def observe(self, timings: PredictTimings) -> None:
        """Takes the times of a request."""
        for stage in STAGES:
            self._stage.labels(stage).observe(getattr(timings, stage))


def _result(failure: WinnowError | None) -> str:
    if failure is None:
        return "ok"
    return next((name for kind, name in _RESULTS if isinstance(failure, kind)), "failed")
