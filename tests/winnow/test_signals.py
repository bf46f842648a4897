"""Tests that raise signals run in processes of their own.

A signal reaches the whole process. The process of other tests has threads in native code, which
earlier tests have left.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tenacious import LONG


@pytest.mark.parametrize("cases", ["service_cases.py", "signal_cases.py"])
def test_signals(cases: str) -> None:
    path = Path(__file__).with_name(cases)
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-rA")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, path],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " skipped" not in done.stdout
