"""What was asked, and what came of it."""

from deploy.grafana.panels import Kind, Panel, Row, Series, panel, shares
from deploy.grafana.queries import (
    CALL_SECONDS,
    CALLS,
    FRONT,
    mean,
    or_zero,
    quantile,
    quantiles,
    rate,
    share,
)

_ASKED, _OK = 'method="Answer"', 'status="OK"'
_FAILED = 'status!~"OK|INVALID_ARGUMENT|CANCELLED"'
_COVERAGE = "winnow_front_coverage_ratio"

ROW = Row(
    "Questions",
    (
        panel(
            "Questions by status",
            "reqps",
            (rate(CALLS, _ASKED, FRONT, by="status"), "{{status}}"),
        ),
        panel(
            "Latency of an answer",
            "s",
            *quantiles(CALL_SECONDS, _ASKED, _OK, FRONT),
            says="Inside the front, answered questions only.",
        ),
        Panel(
            "Answers by latency",
            (Series(rate(f"{CALL_SECONDS}_bucket", _ASKED, _OK, FRONT, by="le"), "{{le}}"),),
            "s",
            "The darker, the more answers took so long.",
            Kind.BUCKETS,
        ),
        panel(
            "Failed questions",
            "percentunit",
            (
                share(
                    f"({or_zero(rate(CALLS, _ASKED, _FAILED, FRONT))})",
                    rate(CALLS, _ASKED, FRONT),
                ),
                "failed",
            ),
            says="Share of the questions that failed for a reason that is not the client's.",
        ),
        shares(
            "Coverage",
            (mean(_COVERAGE, FRONT), "passages searched"),
            (
                share(
                    rate(f"{_COVERAGE}_bucket", 'le="0.999999"', FRONT),
                    rate(f"{_COVERAGE}_count", FRONT),
                ),
                "questions answered in part",
            ),
            says="Share of the known passages that were searched; share of the questions that "
            "searched less than all.",
        ),
        panel(
            "Passages read per question",
            "short",
            (mean("winnow_front_passages_read", FRONT), "mean"),
            (quantile(0.95, "winnow_front_passages_read", FRONT), "p95"),
        ),
    ),
)
