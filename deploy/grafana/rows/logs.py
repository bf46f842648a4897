"""The logs that make writes durable."""

from deploy.grafana.panels import Row, panel
from deploy.grafana.queries import CALLS, NODE, mean, or_zero, quantiles, rate, where

_WRITE = 'method="Write"'

ROW = Row(
    "Logs of shards",
    (
        panel(
            "Writes of each node",
            "wps",
            (
                rate("winnow_node_writes_total", NODE, by="instance, outcome"),
                "{{instance}} {{outcome}}",
            ),
        ),
        panel(
            "Time of a transaction",
            "s",
            *quantiles("winnow_node_commit_seconds", NODE),
            says="Until it is on the disk.",
        ),
        panel(
            "Writes",
            "short",
            (mean("winnow_node_commit_writes", NODE), "mean of a transaction"),
            (where("winnow_node_writes_waiting", NODE), "waiting, {{instance}}"),
        ),
        panel("Log on disk", "bytes", (where("winnow_node_log_bytes", NODE), "{{instance}}")),
        panel(
            "Room left on disk",
            "bytes",
            (where("winnow_node_disk_free_bytes", NODE), "{{instance}}"),
        ),
        panel(
            "Refused or failed writes",
            "cps",
            (
                or_zero(rate(CALLS, _WRITE, 'status!="OK"', NODE, by="instance, status")),
                "{{instance}} {{status}}",
            ),
        ),
    ),
)
