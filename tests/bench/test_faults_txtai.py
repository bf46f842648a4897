"""What is told of txtai's cluster, and of Winnow's beside it."""

import pytest

from bench.faults.rows import Row
from bench.faults.txtai import beside, figures

LOST = Row(0.0, 2.0, "late", 0.0, complete=False)


def test_figures_leave_out_waiting_and_have_no_latency_without_an_answer() -> None:
    rows = {"waiting": [LOST], "healthy": [Row(0.0, 0.1), LOST], "killed": [LOST]}
    found = figures(rows)
    assert found["healthy"] == pytest.approx(
        {"questions": 2, "availability": 0.5, "p50_ms": 100.0, "p99_ms": 100.0}
    )
    assert found["killed"] == {"questions": 1, "availability": 0.0}
    assert "waiting" not in found


def test_the_same_phases_of_winnow_stand_beside_as_far_as_they_are_there() -> None:
    results = {"stop-shard": {"phases": {"healthy": {"questions": 1}, "without": {"questions": 2}}}}
    assert list(beside(results)) == [
        ("healthy, before stopped", {"questions": 1}),
        ("stopped", {"questions": 2}),
    ]
    assert list(beside({})) == []
