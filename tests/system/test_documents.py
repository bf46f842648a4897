"""`winnow up --documents` answers from a folder, and follows its changes, as `winnow sync` does."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tenacious import LONG

from winnow.client import Client, PassageFields

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
        process.communicate(timeout=LONG)


def test_a_folder_is_served_and_followed(tmp_path: Path) -> None:
    """An answer cites its document, and a new file is found soon.

    A sync removes what an interrupted sync left, and nothing that is not the folder's.
    """
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "areas.md").write_text(
        "# Policy\n\n## Archive areas\n\nThe Debian archive has three areas: main, contrib and "
        "non-free.\n"
    )
    with served(folder) as (address, feed, lines), Client(address) as client:
        reply = client.ask("How many areas does the Debian archive have?", timeout=LONG)
        assert reply.answers[0].text == "three"
        source = reply.answers[0].source
        assert source is not None
        assert source.citation == "areas.md, Archive areas"

        (folder / "team.txt").write_text("The mascot of the project is a penguin called Tux.\n")
        next(line for line in lines if "1 document changed" in line)
        mascot = client.ask("What is the mascot of the project called?", timeout=LONG)
        assert mascot.answers[0].passage.id == "team.txt#0"

        assert sync(folder, feed) == "2 documents: 0 added, 0 replaced, 0 removed, 2 unchanged\n"
        with Client(feed) as feeder:
            feeder.put(
                [
                    passage("team.txt", 150, document_hash="0"),
                    passage("gone.txt", 150, document_hash="0"),
                    passage("added.txt", 0, document_hash="upload-0"),
                    passage("own.txt", 0),
                ]
            )
            assert (
                sync(folder, feed) == "3 documents: 0 added, 1 replaced, 1 removed, 1 unchanged\n"
            )
            assert {each.name: each.passages for each in feeder.list_documents()} == {
                "added.txt": 1,
                "areas.md": 1,
                "own.txt": 1,
                "team.txt": 1,
            }


def sync(folder: Path, feed: str) -> str:
    """Returns what `winnow sync` prints."""
    command = [sys.executable, "-m", "winnow", "sync", str(folder), "--address", feed]
    synced = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=True)
    return synced.stdout


def passage(document: str, number: int, **metadata: str) -> PassageFields:
    """Returns a passage that no sync of the folder would store."""
    name = f"{document}#{number}"
    return {"id": name, "text": "A text.", "metadata": {"document": document, **metadata}}
