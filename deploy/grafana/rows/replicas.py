"""Shards and their replicas, as fronts see them."""

from deploy.grafana.panels import Row, panel
from deploy.grafana.queries import CALLS, FRONT, NODE, SHARD, or_zero, rate, share, where

_SEARCHING = 'method=~"Retrieve|Read|Search"'

ROW = Row(
    "Shards and replicas",
    (
        panel(
            "Replicas that get calls",
            "short",
            (where("winnow_front_replicas", FRONT, SHARD), "shard {{shard}}"),
            (where("winnow_front_refused_nodes", FRONT), "refused"),
            (where("winnow_front_not_loaded_nodes", FRONT), "not loaded"),
            says="Refused: nodes that do not belong to the index. Not loaded: without their shard.",
        ),
        panel(
            "Shards that did not answer",
            "cps",
            (
                or_zero(
                    rate("winnow_front_shard_failures_total", FRONT, SHARD, by="shard, status")
                ),
                "shard {{shard}} {{status}}",
            ),
        ),
        panel(
            "Hedges and retries",
            "cps",
            (rate("winnow_front_hedges_total", FRONT, SHARD, by="result"), "hedges {{result}}"),
            (rate("winnow_front_retries_total", FRONT, SHARD, by="result"), "retries {{result}}"),
        ),
        panel(
            "Load added by hedges",
            "percentunit",
            (
                share(
                    rate("winnow_front_hedges_total", 'result="sent"', FRONT),
                    rate(CALLS, _SEARCHING, NODE),
                ),
                "hedges",
            ),
            says="Share of the calls to nodes; the budget is 5 %.",
        ),
        panel(
            "Replicas left out",
            "cps",
            (
                rate("winnow_front_ejections_total", FRONT, SHARD, by="shard, replica"),
                "shard {{shard}}, {{replica}}",
            ),
            says="How often, not how long.",
        ),
        panel(
            "Calls in hand of each replica",
            "short",
            (
                where("winnow_front_replica_outstanding", FRONT, SHARD),
                "shard {{shard}}, {{replica}}",
            ),
        ),
    ),
)
