"""Heads in the memory of fronts and head servers."""

from deploy.grafana.panels import Row, panel, shares
from deploy.grafana.queries import PLACE, RING, hits, quantile, quantiles, rate, share, where

ROW = Row(
    "Heads in memory",
    (
        panel(
            "Heads", "short", (where("winnow_heads_warm", RING, PLACE), "{{ring}}, {{instance}}")
        ),
        shares(
            "Memory, of what they may take",
            (
                share(
                    where("winnow_heads_memory_bytes", RING, PLACE),
                    where("winnow_heads_budget_bytes", RING, PLACE),
                ),
                "{{ring}}, {{instance}}",
            ),
        ),
        shares(
            "Asked for, and in memory",
            (hits("winnow_heads_lookups_total", RING, PLACE), "share of hits"),
        ),
        panel(
            "Loads by result",
            "cps",
            (rate("winnow_heads_loads_total", RING, PLACE, by="result"), "{{result}}"),
        ),
        panel(
            "Time of a load that somebody waited for, p95",
            "s",
            (quantile(0.95, "winnow_heads_load_seconds", RING, PLACE, by="ring"), "{{ring}}"),
        ),
        panel(
            "Heads that left for others",
            "cps",
            (
                rate("winnow_heads_evictions_total", RING, PLACE, by="ring, instance"),
                "{{ring}}, {{instance}}",
            ),
            says="Many: the heads in use need more memory than they may take.",
        ),
        panel(
            "Heads run, by result",
            "ops",
            (
                rate("winnow_heads_applied_total", RING, PLACE, by="ring, result"),
                "{{ring}} {{result}}",
            ),
        ),
        panel(
            "Time of all heads of a text",
            "s",
            *quantiles("winnow_heads_apply_seconds", RING, PLACE),
        ),
        panel(
            "Looks for newer versions",
            "cps",
            (rate("winnow_heads_looks_total", RING, PLACE, by="result"), "{{result}}"),
            says="Failed: the store cannot be reached, and heads in memory serve on.",
        ),
    ),
)
