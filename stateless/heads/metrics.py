"""Metrics of predictions. Callers cannot choose the value of any label."""

from prometheus_client import CollectorRegistry

from winnow.domain.prediction import PredictTimings
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    WinnowError,
)
from winnow.telemetry.metrics import FAST, MetricFactory

STAGES = ("queue", "tokenise", "encode", "heads")
_RESULTS: tuple[tuple[type[WinnowError], str], ...] = (
    (NotFoundError, "unknown"),
    (OverloadedError, "refused"),
    (DeadlineExceededError, "late"),
    (IdentityError, "other_encoder"),
)


class HeadMetrics:
    """Metrics of the predictions that a front node makes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        make = MetricFactory(registry)
        self._stage = make.histogram(
            "winnow_front_predict_stage_seconds",
            "Time of each stage of a request for predictions, summed over its texts",
            "stage",
            buckets=FAST,
        )
        self._predictions = make.counter(
            "winnow_front_predictions",
            "Heads applied to texts and questions, by result: ok, unknown, refused, late, "
            "other_encoder or failed",
            "result",
            values=("ok", *(name for _, name in _RESULTS), "failed"),
        )
        self.texts = make.gauge(
            "winnow_front_texts_in_hand", "Texts that heads are being applied to"
        )
        self.refusals = make.counter(
            "winnow_front_predict_refusals",
            "Requests for predictions that were refused because too many texts were in flight",
        )

    def count_prediction(self, failure: WinnowError | None) -> None:
        """Counts the result of a head on one text; `failure` is None if the head was applied."""
        self._predictions.labels(_result_label(failure)).inc()

    def observe(self, timings: PredictTimings) -> None:
        """Records the timings of a request."""
        for stage in STAGES:
            self._stage.labels(stage).observe(getattr(timings, stage))


def _result_label(failure: WinnowError | None) -> str:
    if failure is None:
        return "ok"
    return next((name for kind, name in _RESULTS if isinstance(failure, kind)), "failed")
