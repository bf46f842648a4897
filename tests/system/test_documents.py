"""`winnow up --documents` answers from a folder, and follows its changes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from winnow.client import Client

_SECONDS = 110.0
_ARGUMENTS = ("--listen", "127.0.0.1:0", "--feed-listen", "127.0.0.1:0", "--http-listen", "")


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str, Iterator[str]]]:
    """Yields the addresses for questions and feeding, and the later lines of the log."""
    command = [sys.executable, "-m", "winnow", "up", "--documents", str(folder), *_ARGUMENTS]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stderr is not None
    lines = iter(process.stderr)
    try:
        ready = next(line for line in lines if line.startswith("ready on "))
        feed = next(line for line in lines if line.startswith("  winnow feed "))
        yield ready.split()[2].rstrip(";"), feed.split()[-1], lines
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=_SECONDS)


def test_a_folder_is_served_and_followed(tmp_path: Path) -> None:
    """An answer cites its document; a new file is found soon, and a sync finds nothing to do."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "areas.md").write_text(
        "# Policy\n\n## Archive areas\n\nThe Debian archive has three areas: main, contrib and "
        "non-free.\n"
    )
    with served(folder) as (address, feed, lines), Client(address) as client:
        reply = client.ask("How many areas does the Debian archive have?", timeout=_SECONDS)
        assert reply.answers[0].text == "three"
        source = reply.answers[0].source
        assert source is not None
        assert source.citation == "areas.md, Archive areas"

        (folder / "team.txt").write_text("The mascot of the project is a penguin called Tux.\n")
        next(line for line in lines if "1 document changed" in line)
        mascot = client.ask("What is the mascot of the project called?", timeout=_SECONDS)
        assert mascot.answers[0].passage.id == "team.txt#0"

        command = [sys.executable, "-m", "winnow", "sync", str(folder), "--address", feed]
        synced = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=True
        )
        assert synced.stdout == "2 documents: 0 added, 0 replaced, 0 removed, 2 unchanged\n"
