"""The cluster keeps its promises in simulations, which depend on nothing but their seeds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(400)
ROOT = Path(__file__).parent.parent.parent


def simulate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a separate process, because the stand-ins stay until its end."""
    return subprocess.run(
        [sys.executable, "-m", "simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_fault_breaks_a_promise() -> None:
    ran = simulate("--seeds", "8")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_bugs_that_were_found_stay_mended() -> None:
    ran = simulate("--found")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_seed_has_the_same_timeline_in_every_process() -> None:
    first, second = (
        simulate("--seeds", "3", "--first", "1001", "--digests", PYTHONHASHSEED=seed)
        for seed in ("1", "2")
    )
    digests = [line for line in first.stdout.splitlines() if line.startswith("seed ")]
    assert len(digests) == 3, first.stdout + first.stderr
    assert digests == [line for line in second.stdout.splitlines() if line.startswith("seed ")]


def test_a_deliberate_error_is_found_and_explained() -> None:
    ran = simulate(
        "--mutations", "--only", "commits are not synced", "--seeds", "5", "--first", "100"
    )
    assert "found 1 of 1 mutations" in ran.stdout, ran.stdout + ran.stderr
