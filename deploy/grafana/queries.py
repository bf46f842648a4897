"""Expressions of PromQL that dashboards repeat.

`$__rate_interval` is Grafana's: long enough for some scrapes, at least as long as a point of the
picture.
"""

OVER = "$__rate_interval"
QUANTILES = (0.5, 0.95, 0.99)

FRONT = 'instance=~"$front"'
NODE = 'instance=~"$node"'
SHARD = 'shard=~"$shard"'
RING = 'ring=~"$ring"'
PLACE = 'instance=~"$place"'
"""Fronts and head servers that have heads in memory."""
ANY = 'job=~"winnow-.+"'
QUESTION = 'method=~"Answer|AnswerOfMany"'
"""One of a call, or one of a batch by HTTP."""
FAILED_BATCH = 'method="Answers", status!~"OK|CANCELLED"'
"""Nobody knows how many questions it had; if its caller went, each was counted."""
CALLS = "winnow_request_seconds_count"
CALL_SECONDS = "winnow_request_seconds"


def where(metric: str, *matchers: str) -> str:
    """The series of a metric that match."""
    return f"{metric}{{{', '.join(matchers)}}}" if matchers else metric


def rate(counter: str, *matchers: str, by: str = "", over: str = OVER) -> str:
    """What a counter grew by a second, added up but for the labels `by`."""
    grouped = f"sum by ({by})" if by else "sum"
    return f"{grouped} (rate({where(counter, *matchers)}[{over}]))"


def questions(*matchers: str, by: str = "", over: str = OVER) -> str:
    """Questions a second: those of calls and of batches, and batches that failed as a whole."""
    grouped = f"sum by ({by})" if by else "sum"
    each = f"rate({where(CALLS, QUESTION, *matchers)}[{over}])"
    whole = f"rate({where(CALLS, FAILED_BATCH, *matchers)}[{over}])"
    return f"{grouped} ({each} or {whole})"


def or_zero(expr: str) -> str:
    """A line at 0 while there is none: of what is counted only where it happens."""
    return f"{expr} or vector(0)"


def quantile(at: float, histogram: str, *matchers: str, by: str = "", over: str = OVER) -> str:
    """A quantile of a histogram, for each value of the labels `by`."""
    labels = f"le, {by}" if by else "le"
    counts = rate(f"{histogram}_bucket", *matchers, by=labels, over=over)
    return f"histogram_quantile({at}, {counts})"


def quantiles(histogram: str, *matchers: str, by: str = "") -> tuple[tuple[str, str], ...]:
    """The median, p95 and p99, with their names."""
    name = " ".join(f"{{{{{label}}}}}" for label in by.replace(",", " ").split())
    return tuple(
        (quantile(at, histogram, *matchers, by=by), f"{name} p{at * 100:g}".strip())
        for at in QUANTILES
    )


def mean(histogram: str, *matchers: str) -> str:
    """The mean of what was observed."""
    return f"{rate(f'{histogram}_sum', *matchers)} / {rate(f'{histogram}_count', *matchers)}"


def share(part: str, whole: str) -> str:
    """Parts of a whole; no line while there is nothing."""
    return f"{part} / {whole}"


def hits(cache: str, *matchers: str) -> str:
    """The share of the looks into a cache that found something."""
    return share(rate(cache, 'result="hit"', *matchers), rate(cache, *matchers))
