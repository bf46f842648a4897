"""Memory, processors and caches."""

from deploy.grafana.panels import Row, panel, shares
from deploy.grafana.queries import ANY, FRONT, hits, rate, where

ROW = Row(
    "Caches, memory, processors",
    (
        shares(
            "Caches: share of hits",
            (hits("winnow_front_encoding_cache_total", FRONT), "encodings"),
            (hits("winnow_front_answer_cache_total", FRONT), "answers"),
        ),
        panel(
            "Memory of caches",
            "bytes",
            (where("winnow_front_encoding_cache_bytes", FRONT), "encodings, {{instance}}"),
            (where("winnow_front_answer_cache_bytes", FRONT), "answers, {{instance}}"),
        ),
        panel(
            "Memory of processes",
            "bytes",
            (where("process_resident_memory_bytes", ANY), "{{instance}}"),
        ),
        panel(
            "Processors",
            "short",
            (rate("process_cpu_seconds_total", ANY, by="instance"), "{{instance}}"),
            says="Cores at work.",
        ),
        panel("Open files", "short", (where("process_open_fds", ANY), "{{instance}}")),
        panel(
            "Log lines that were dropped",
            "cps",
            (rate("winnow_log_lines_dropped_total", ANY, by="instance"), "{{instance}}"),
        ),
    ),
)
