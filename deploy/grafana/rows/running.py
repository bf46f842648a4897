"""Which processes there are, and what they have loaded."""

from deploy.grafana.panels import Row, numbers, switch
from deploy.grafana.queries import ANY, FRONT, NODE, SHARD, where

ROW = Row(
    "What runs",
    (
        switch("Processes", ("up", "down"), (where("up", ANY), "{{instance}}")),
        switch(
            "Ready",
            ("ready", "not ready"),
            (where("winnow_front_ready", FRONT), "{{instance}}"),
            (where("winnow_node_ready", NODE), "{{instance}}"),
        ),
        numbers(
            "Passages known",
            "short",
            (where("winnow_front_index_passages", FRONT, SHARD), "shard {{shard}} to the front"),
            (where("winnow_node_index_passages", NODE, SHARD), "shard {{shard}} on {{instance}}"),
            says="They differ while writes are on their way, or where a node has another index.",
        ),
        numbers(
            "Bundles",
            "short",
            (
                f"count by (name, version, fingerprint) ({where('winnow_bundle_info', ANY)})",
                "{{name}} {{version}} {{fingerprint}}",
            ),
            says="Processes by bundle; more than one bundle is a deployment left half done.",
        ),
        numbers(
            "Runtimes",
            "short",
            (
                f"count by (model, runtime, chosen_by) ({where('winnow_model_runtime_info', ANY)})",
                "{{model}} {{runtime}} ({{chosen_by}})",
            ),
            says="Processes by the runtime of each model. Where equal machines differ, so do the "
            "last digits of their answers.",
        ),
        numbers(
            "Versions",
            "short",
            (f"count by (version) ({where('winnow_build_info', ANY)})", "{{version}}"),
            says="Processes by version of Winnow; more than one while a new one is rolled out.",
        ),
    ),
)
