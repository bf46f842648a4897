"""What waits, and how busy readers are."""

from deploy.grafana.panels import Row, panel, shares
from deploy.grafana.queries import FRONT, NODE, OVER, quantile, quantiles, rate, share, where

_STAGE = "winnow_front_stage_seconds"

ROW = Row(
    "Queues and load",
    (
        panel(
            "What is let in",
            "reqps",
            (rate("winnow_front_admissions_total", FRONT, by="result"), "{{result}}"),
            says="Dimmed: fewer passages are read than were asked for.",
        ),
        panel(
            "Waiting before the encoder",
            "s",
            *quantiles(_STAGE, 'stage="queue"', FRONT),
            says="Time until a question has a thread of the front.",
        ),
        panel(
            "Waiting before the readers",
            "s",
            (
                quantile(0.95, "winnow_node_stage_seconds", 'stage="queue"', NODE, by="instance"),
                "{{instance}}",
            ),
            says="p95 of the time until the first passage of a call is read.",
        ),
        panel(
            "In hand",
            "short",
            (where("winnow_front_questions_in_flight", FRONT), "questions, {{instance}}"),
            (where("winnow_front_reads_in_hand", FRONT), "passages, {{instance}}"),
            (where("winnow_node_reads_in_hand", NODE), "passages, {{instance}}"),
            says="Questions being answered; passages that wait to be read or are being read.",
        ),
        shares(
            "Readers at work",
            (
                share(
                    f"avg_over_time({where('winnow_node_reader_threads_busy', NODE)}[{OVER}])",
                    where("winnow_node_reader_threads", NODE),
                ),
                "{{instance}}",
            ),
            says="Share of the reader threads. Near 1 there is no time left.",
        ),
        panel(
            "Passages read",
            "cps",
            (rate("winnow_node_passages_read_total", NODE, by="instance"), "{{instance}} read"),
            (
                rate("winnow_node_reads_stopped_total", NODE, by="instance"),
                "{{instance}} given up",
            ),
            (rate("winnow_node_runs_ended_total", NODE, by="instance"), "{{instance}} ended"),
            says="Given up: nobody waited for them any more. Ended: while they were read.",
        ),
        panel(
            "Time per passage",
            "s",
            (where("winnow_front_seconds_per_read", FRONT), "{{instance}}"),
            (where("winnow_node_seconds_per_read", NODE), "{{instance}}"),
            says="Nodes: all threads together. Front: all nodes together, by what they say.",
        ),
        panel(
            "Refused by nodes",
            "cps",
            (
                rate("winnow_node_admission_total", 'result="refused"', NODE, by="instance"),
                "{{instance}}",
            ),
            says="The front should refuse before nodes have to.",
        ),
    ),
)
