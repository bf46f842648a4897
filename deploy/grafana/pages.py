"""The dashboards: which rows each has, and what can be chosen at its head."""

from deploy.grafana.panels import Dashboard, Variable
from deploy.grafana.rows import (
    access,
    encoders,
    fed,
    head_servers,
    in_memory,
    index,
    journal,
    load,
    logs,
    merging,
    predictions,
    processes,
    questions,
    replicas,
    running,
    stages,
)

_FRONT = Variable("front", "front", "winnow_front_ready", "instance")
_NODE = Variable("node", "node", "winnow_node_ready", "instance")

PAGES = (
    Dashboard(
        "winnow-overview",
        "Winnow: overview",
        (_FRONT, _NODE, Variable("shard", "shard", "winnow_front_replicas", "shard")),
        (
            questions.ROW,
            stages.ROW,
            load.ROW,
            replicas.ROW,
            processes.ROW,
            access.ROW,
            running.ROW,
        ),
    ),
    Dashboard(
        "winnow-feeding",
        "Winnow: index and feed",
        (_FRONT, _NODE, Variable("shard", "shard", "winnow_node_index_passages", "shard")),
        (fed.ROW, logs.ROW, merging.ROW, index.ROW, journal.ROW),
    ),
    Dashboard(
        "winnow-heads",
        "Winnow: heads",
        (
            _FRONT,
            Variable("ring", "ring", "winnow_heads_budget_bytes", "ring"),
            Variable("place", "front or head server", "winnow_heads_budget_bytes", "instance"),
        ),
        (predictions.ROW, in_memory.ROW, head_servers.ROW, encoders.ROW),
    ),
)
