"""A page of metrics: what is read off it, and off the growth between two."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from winnow.cli.top.metrics_page import MetricsPage


def page(*seconds: float, calls: int = 0) -> MetricsPage:
    registry = CollectorRegistry()
    took = Histogram("took", "A time", ("stage",), buckets=(1, 2, 4), registry=registry)
    took.labels("idle")
    for each in seconds:
        took.labels("read").observe(each)
    Counter("calls", "Calls", ("method",), registry=registry).labels("Read").inc(calls)
    return MetricsPage.parse(generate_latest(registry).decode())


def test_series_that_match_are_added_up() -> None:
    shown = page(1, 3, calls=2)
    assert shown.total("took_count") == 2
    assert shown.total("took_sum", stage="read") == 4
    assert shown.total("calls_total", method=("Read", "Search")) == 2
    assert shown.total("calls_total", method="Search") is None
    assert shown.label_values("took_count", "stage") == ["idle", "read"]
    assert shown.mean("took") == 2
    assert shown.share("took_count", stage="read") == 1


@pytest.mark.parametrize(
    ("seconds", "at", "expected"),
    [
        ([0.5] * 10, 0.5, 0.5),
        ([0.5] * 5 + [1.5] * 5, 0.75, 1.5),
        ([1.5] * 9 + [3.0], 0.95, 3.0),
        ([9.0], 0.5, 4.0),  # beyond the last bound: it was at least that
        ([], 0.5, None),
    ],
)
def test_a_quantile_lies_between_two_bounds_as_prometheus_has_it(
    seconds: list[float], at: float, expected: float | None
) -> None:
    assert page(*seconds).quantile(at, "took") == expected
    assert page(*seconds).quantile(at, "took", stage="idle") is None


def test_counts_since_a_page_are_all_counts_after_a_restart() -> None:
    assert page(1, 1, 3).increase_since(page(1, 1)).quantile(0.5, "took") == 3
    assert page(calls=7).increase_since(page(calls=5)).total("calls_total") == 2
    assert page(calls=2).increase_since(page(calls=5)).total("calls_total") == 2


def test_pages_of_several_processes_are_one_together() -> None:
    assert MetricsPage.sum([page(calls=2), page(calls=3)]).total("calls_total") == 5


def test_a_text_that_is_no_page_of_metrics_is_refused() -> None:
    with pytest.raises(ValueError, match="convert"):
        MetricsPage.parse("nonsense {")
