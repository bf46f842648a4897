"""How writes become files of a shard."""

from deploy.grafana.panels import Row, panel, shares, switch
from deploy.grafana.queries import NODE, quantile, rate, share, where

_LIMIT = where("winnow_node_unmerged_limit_writes", NODE)
_MERGES = rate("winnow_node_merges_total", NODE, by="instance, result", over="1h")

ROW = Row(
    "Merging",
    (
        panel(
            "Unmerged writes",
            "short",
            (where("winnow_node_unmerged_writes", NODE), "{{instance}}"),
        ),
        shares(
            "Unmerged writes, of what is taken",
            (
                share(where("winnow_node_unmerged_writes", NODE), f"({_LIMIT} > 0)"),
                "{{instance}}",
            ),
            says="At 1 the shard takes no more.",
        ),
        switch(
            "Now",
            ("merging", "idle"),
            (where("winnow_node_merging", NODE), "{{instance}}"),
            colours=("blue", "green"),
        ),
        panel(
            "Merges",
            "short",
            (
                f"3600 * {_MERGES}",
                "{{instance}} {{result}}",
            ),
            says="In an hour.",
        ),
        panel(
            "Time of a merge",
            "s",
            (
                quantile(0.95, "winnow_node_merge_seconds", NODE, by="instance", over="6h"),
                "{{instance}} p95",
            ),
            says="From its beginning until its result is served; of six hours.",
        ),
        panel(
            "Rows without a passage", "short", (where("winnow_node_holes", NODE), "{{instance}}")
        ),
    ),
)
