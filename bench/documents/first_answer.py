"""Measures how long a folder of documents takes to its first answer, with the README's commands."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.figures import Figure

_WINNOW = (sys.executable, "-m", "winnow")
_FREE = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")


def measure_first_answer(folder: Path, question: str) -> list[Figure]:
    """Runs `winnow up --documents` on a copy of the folder, and asks as soon as it serves.

    Prints the output of both commands on stderr, each line with the seconds since the beginning.
    The processor time of all processes is measured, too, because other programs slow them down.
    """
    with tempfile.TemporaryDirectory() as directory:
        copy = shutil.copytree(folder, Path(directory, "documents"))
        began, seconds = time.monotonic(), float("nan")
        up = subprocess.Popen(
            [*_WINNOW, "up", "--documents", str(copy), *_FREE],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert up.stderr is not None
        try:
            for line in up.stderr:
                print(f"{time.monotonic() - began:6.1f} s  {line}", end="", file=sys.stderr)
                if line.startswith("ready on "):
                    ask = [*_WINNOW, "ask", question, "--address", line.split()[2].rstrip(";")]
                    subprocess.run(ask, check=True, stdout=sys.stderr)
                    seconds = time.monotonic() - began
                    break
        finally:
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [
        Figure("first", "time to the first answer", seconds, "s"),
        Figure("first", "processor time of all processes", used.ru_utime + used.ru_stime, "s"),
    ]
