"""What was asked, and what came of it."""

from deploy.grafana.panels import Kind, Panel, Row, Series, panel, shares
from deploy.grafana.queries import (
    CALL_SECONDS,
    FRONT,
    QUESTION,
    mean,
    or_zero,
    quantile,
    quantiles,
    questions,
    rate,
    share,
)

_OK = 'status="OK"'
_NOT_LET_IN = "UNAUTHENTICATED|PERMISSION_DENIED"
_FAILED = f'status!~"OK|INVALID_ARGUMENT|CANCELLED|{_NOT_LET_IN}"'
_LET_IN = f'status!~"{_NOT_LET_IN}"'
_OVER_RATE = rate("winnow_front_key_refusals_total", 'scope="ask"', 'reason="rate"', FRONT)
_COVERAGE = "winnow_front_coverage_ratio"

ROW = Row(
    "Questions",
    (
        panel(
            "Questions by status",
            "reqps",
            (questions(FRONT, by="status"), "{{status}}"),
            says="By gRPC and HTTP, alone or of a batch. A batch refused as a whole is one.",
        ),
        panel(
            "Latency of an answer",
            "s",
            *quantiles(CALL_SECONDS, QUESTION, _OK, FRONT),
            says="Inside the front, answered questions only; of a batch each for itself.",
        ),
        Panel(
            "Answers by latency",
            (Series(rate(f"{CALL_SECONDS}_bucket", QUESTION, _OK, FRONT, by="le"), "{{le}}"),),
            "s",
            "The darker, the more answers took so long.",
            Kind.BUCKETS,
        ),
        panel(
            "Failed questions",
            "percentunit",
            (
                share(
                    "clamp_min("
                    f"({or_zero(questions(_FAILED, FRONT))}) - ({or_zero(_OVER_RATE)}), 0)",
                    questions(_LET_IN, FRONT),
                ),
                "failed",
            ),
            says="Share of the questions that failed for a reason that is not the client's: a key "
            "that is wrong or used too often is the client's.",
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
            (mean("winnow_front_passages_needed", FRONT), "mean needed"),
            says="Idle readers read ahead: where reading stops early, answers need fewer.",
        ),
    ),
)
