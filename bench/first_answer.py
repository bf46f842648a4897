"""Measures how long a folder takes to its first cited answer, with the commands of the README.

    python bench/first_answer.py FOLDER QUESTION

Copies the folder, runs `winnow up --documents` on the copy, and asks as soon as it serves.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_WINNOW = (sys.executable, "-m", "winnow")
_FREE = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")


def main(folder: Path, question: str) -> None:
    """Prints what both commands print, and the seconds since the beginning.

    Prints the processor time of all processes, too, since other programs slow the commands down.
    """
    with tempfile.TemporaryDirectory() as directory:
        copy = shutil.copytree(folder, Path(directory, "documents"))
        began = time.monotonic()
        up = subprocess.Popen(
            [*_WINNOW, "up", "--documents", str(copy), *_FREE],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert up.stderr is not None
        try:
            for line in up.stderr:
                print(f"{time.monotonic() - began:6.1f} s  {line}", end="", flush=True)
                if line.startswith("ready on "):
                    address = line.split()[2].rstrip(";")
                    subprocess.run([*_WINNOW, "ask", question, "--address", address], check=True)
                    print(f"{time.monotonic() - began:6.1f} s  first answer")
                    break
        finally:
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:6.1f} s of processor time")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
