"""What nodes serve, how far they are, and their snapshots."""

from deploy.grafana.panels import Row, numbers, panel
from deploy.grafana.queries import FRONT, NODE, SHARD, where

_LAST = where("winnow_node_sequence", NODE)

ROW = Row(
    "The index",
    (
        panel(
            "Passages",
            "short",
            (where("winnow_node_index_passages", NODE, SHARD), "shard {{shard}} on {{instance}}"),
        ),
        panel(
            "Last write that is served",
            "short",
            (_LAST, "{{instance}}"),
        ),
        panel(
            "Writes that replicas lack",
            "short",
            (
                where("winnow_front_replica_lag_writes", FRONT, SHARD),
                "shard {{shard}}, {{replica}}",
            ),
            says="Against the replica of the shard that is furthest.",
        ),
        numbers(
            "Files",
            "short",
            (where("winnow_node_shard_changed", NODE), "{{instance}}"),
            says="1: what is on disk is not what is served.",
        ),
        numbers(
            "Age of the last snapshot",
            "s",
            (f"time() - {where('winnow_node_snapshot_timestamp_seconds', NODE)}", "{{instance}}"),
        ),
        panel(
            "Writes since the last snapshot",
            "short",
            (
                f"{_LAST} - {where('winnow_node_snapshot_sequence', NODE)}",
                "{{instance}}",
            ),
        ),
    ),
)
