"""Head servers."""

from deploy.grafana.panels import Row, panel, switch
from deploy.grafana.queries import CALLS, PLACE, rate, where

ROW = Row(
    "Head servers",
    (
        switch(
            "Ready",
            ("ready", "not ready"),
            (where("winnow_head_node_ready", PLACE), "{{instance}}"),
        ),
        panel(
            "Calls by status",
            "reqps",
            (
                rate(CALLS, 'method="Apply"', PLACE, by="instance, status"),
                "{{instance}} {{status}}",
            ),
        ),
        panel(
            "Texts",
            "short",
            (where("winnow_head_node_texts_in_hand", PLACE), "in hand, {{instance}}"),
            (
                rate("winnow_head_node_refusals_total", PLACE, by="instance"),
                "refused a second, {{instance}}",
            ),
        ),
    ),
)
