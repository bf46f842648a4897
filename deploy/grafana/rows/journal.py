"""The journal that replicas follow."""

from deploy.grafana.panels import Row, panel, switch
from deploy.grafana.queries import NODE, rate, where

ROW = Row(
    "The journal that replicas follow",
    (
        switch(
            "Followed",
            ("followed", "lost"),
            (where("winnow_node_journal_followed", NODE), "{{instance}}"),
        ),
        panel(
            "Entries that replicas lack",
            "short",
            (where("winnow_node_journal_behind_entries", NODE), "{{instance}}"),
        ),
        panel(
            "Entries stored",
            "cps",
            (rate("winnow_node_journal_entries_total", NODE, by="instance"), "{{instance}}"),
        ),
        panel(
            "Expired entries skipped",
            "cps",
            (
                rate("winnow_node_journal_expired_entries_total", NODE, by="instance"),
                "{{instance}}",
            ),
        ),
    ),
)
