"""Memory, processors and caches."""

from deploy.grafana.panels import Row, panel, shares
from deploy.grafana.queries import ANY, FRONT, hits, or_zero, rate, where

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
        panel(
            "HTTP connections",
            "short",
            (where("winnow_http_connections", FRONT), "open, {{instance}}"),
            (
                or_zero(rate("winnow_http_connections_ended_total", FRONT, by="reason")),
                "ended a second, {{reason}}",
            ),
            says="Ended by the front: slow, idle, crowded or unread.",
        ),
        panel(
            "Spans of traces",
            "cps",
            (or_zero(rate("winnow_trace_spans_total", ANY, by="result")), "{{result}}"),
            says="Dropped: the collector is slow or gone. None where nothing is traced.",
        ),
    ),
)
