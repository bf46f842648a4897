"""What fronts are fed."""

from deploy.grafana.panels import Row, panel
from deploy.grafana.queries import CALLS, FRONT, SHARD, or_zero, quantile, rate, where

_FED = 'method=~"Put|PutStream|Delete|DeleteStream"'

ROW = Row(
    "What fronts are fed",
    (
        panel(
            "Writes by outcome",
            "wps",
            (rate("winnow_front_feed_writes_total", FRONT, by="outcome"), "{{outcome}}"),
            says="Unchanged: the same was there. Outdated: a later version was there.",
        ),
        panel(
            "Calls by status",
            "reqps",
            (rate(CALLS, _FED, FRONT, by="method, status"), "{{method}} {{status}}"),
        ),
        panel(
            "Stages of a call, p95",
            "s",
            (quantile(0.95, "winnow_front_feed_stage_seconds", FRONT, by="stage"), "{{stage}}"),
            says="Encode, and store: until every shard has said that it is durable.",
        ),
        panel(
            "Passages in hand",
            "short",
            (where("winnow_front_feed_passages_in_hand", FRONT), "{{instance}}"),
        ),
        panel(
            "Calls refused",
            "cps",
            (rate("winnow_front_feed_refusals_total", FRONT, by="instance"), "{{instance}}"),
            says="Too much was in hand.",
        ),
        panel(
            "Writes to shards sent again",
            "cps",
            (
                or_zero(rate("winnow_front_feed_retries_total", FRONT, SHARD, by="shard")),
                "shard {{shard}}",
            ),
        ),
    ),
)
