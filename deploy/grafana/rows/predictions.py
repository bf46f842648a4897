"""What heads were asked."""

from deploy.grafana.panels import Row, panel
from deploy.grafana.queries import CALL_SECONDS, CALLS, FRONT, quantile, quantiles, rate, where

_PREDICT = 'method="Predict"'

ROW = Row(
    "Predictions",
    (
        panel(
            "Calls by status", "reqps", (rate(CALLS, _PREDICT, FRONT, by="status"), "{{status}}")
        ),
        panel("Latency of a call", "s", *quantiles(CALL_SECONDS, _PREDICT, 'status="OK"', FRONT)),
        panel(
            "Heads applied, by result",
            "ops",
            (rate("winnow_front_predictions_total", FRONT, by="result"), "{{result}}"),
            says="To texts and to questions.",
        ),
        panel(
            "Stages of a call, p95",
            "s",
            (quantile(0.95, "winnow_front_predict_stage_seconds", FRONT, by="stage"), "{{stage}}"),
        ),
        panel(
            "Texts in hand", "short", (where("winnow_front_texts_in_hand", FRONT), "{{instance}}")
        ),
        panel(
            "Calls refused",
            "cps",
            (rate("winnow_front_predict_refusals_total", FRONT, by="instance"), "{{instance}}"),
            says="Too many texts were in hand.",
        ),
    ),
)
