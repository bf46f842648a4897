"""Figures of txtai's cluster, and Winnow's beside them."""

import pytest

from bench.scenarios.rows import Row, failed_row
from bench.txtai import phase_figures, winnow_phases

LOST = failed_row("late")


def test_figures_omit_waiting_and_latencies_without_answers() -> None:
    rows = {"waiting": [LOST], "healthy": [Row(0.0, 0.1), LOST], "killed": [LOST]}
    found = phase_figures(rows)
    assert found["healthy"] == pytest.approx(
        {"questions": 2, "availability": 0.5, "p50_ms": 100.0, "p99_ms": 100.0}
    )
    assert found["killed"] == {"questions": 1, "availability": 0.0}
    assert "waiting" not in found


def test_matching_phases_in_winnows_results_are_shown() -> None:
    results = {"stop-shard": {"phases": {"healthy": {"questions": 1}, "without": {"questions": 2}}}}
    assert list(winnow_phases(results)) == [
        ("healthy, before stopped", {"questions": 1}),
        ("stopped", {"questions": 2}),
    ]
    assert list(winnow_phases({})) == []
