"""Encoder servers."""

from deploy.grafana.panels import Row, panel, switch
from deploy.grafana.queries import quantile, rate

ROW = Row(
    "Encoder servers",
    (
        switch("Ready", ("ready", "not ready"), ("winnow_encoder_ready", "{{instance}}")),
        panel(
            "Waiting and encoding, p95",
            "s",
            (
                quantile(0.95, "winnow_encoder_stage_seconds", by="instance, stage"),
                "{{instance}} {{stage}}",
            ),
        ),
        panel(
            "Texts",
            "cps",
            (
                rate("winnow_encoder_admission_total", by="instance, result"),
                "{{instance}} {{result}}",
            ),
        ),
        panel("Texts in hand", "short", ("winnow_encoder_texts_in_hand", "{{instance}}")),
        panel(
            "Time per text",
            "s",
            ("winnow_encoder_seconds_per_text", "{{instance}}"),
            says="All threads together.",
        ),
    ),
)
