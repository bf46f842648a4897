"""Where the time of a question goes."""

from deploy.grafana.panels import Kind, Panel, Row, Series, panel
from deploy.grafana.queries import CALL_SECONDS, FRONT, NODE, SHARD, quantile

_SEARCHING = 'method=~"Retrieve|Read|Search"'
_STAGE = "winnow_front_stage_seconds"

ROW = Row(
    "Where the time goes",
    (
        *(
            panel(
                f"Stages of the front, p{100 * at:g}",
                "s",
                (quantile(at, _STAGE, FRONT, by="stage"), "{{stage}}"),
            )
            for at in (0.5, 0.95, 0.99)
        ),
        Panel(
            "Reading on each shard, p95",
            (
                Series(
                    quantile(
                        0.95,
                        "winnow_front_shard_seconds",
                        'stage="read"',
                        FRONT,
                        SHARD,
                        by="shard",
                    ),
                    "{{shard}}",
                ),
            ),
            "s",
            "A row for each shard: the darker, the slower.",
            Kind.ROWS,
        ),
        panel(
            "Stages of each shard, p95",
            "s",
            (
                quantile(0.95, "winnow_front_shard_seconds", FRONT, SHARD, by="shard, stage"),
                "shard {{shard}} {{stage}}",
            ),
            says="As the shards reported them to the front: without the network.",
        ),
        panel(
            "Calls to each node, p95",
            "s",
            (
                quantile(0.95, CALL_SECONDS, _SEARCHING, NODE, by="instance, method"),
                "{{instance}} {{method}}",
            ),
            says="Inside the node, with the wait for its readers.",
        ),
    ),
)
