"""The cluster keeps its promises in simulations, which depend on nothing but their seeds."""

import pytest
from simulated import simulate

pytestmark = pytest.mark.timeout(900)


def test_no_fault_breaks_a_promise() -> None:
    ran = simulate("--seeds", "5")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_bugs_that_were_found_stay_mended() -> None:
    ran = simulate("--found")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_seed_has_the_same_timeline_in_every_process() -> None:
    first, second = (
        simulate("--seeds", "2", "--first", "1001", "--digests", PYTHONHASHSEED=seed)
        for seed in ("1", "2")
    )
    digests = [line for line in first.stdout.splitlines() if line.startswith("seed ")]
    assert len(digests) == 2, first.stdout + first.stderr
    assert digests == [line for line in second.stdout.splitlines() if line.startswith("seed ")]


def test_a_deliberate_error_is_found_and_explained() -> None:
    ran = simulate(
        "--mutations", "--only", "commits are not synced", "--seeds", "5", "--first", "100"
    )
    assert "found 1 of 1 mutations" in ran.stdout, ran.stdout + ran.stderr
