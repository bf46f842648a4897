"""Runs the command of simulations."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


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
