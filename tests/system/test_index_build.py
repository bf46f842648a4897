"""`winnow index build` in a separate process: full disks, signals, logs."""

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tenacious import LONG

from winnow.content_node.indexing.verify import verify_index

TEXT = "The quick brown fox jumps over the lazy dog again and again."


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Writes passages whose encoding takes some seconds."""
    path = tmp_path / "many.jsonl"
    rows = (json.dumps({"id": str(n), "text": f"{n} {TEXT}"}) for n in range(800))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def command(passages: Path, out: Path, first: str = "") -> list[str]:
    """Returns the command of a build; with `first`, in a shell that runs this command before."""
    build = [sys.executable, "-m", "winnow", "index", "build", "--passages", str(passages)]
    build += ["--out", str(out), "--threads", "1"]
    return ["sh", "-c", f'{first}; exec "$@"', "sh", *build] if first else build


def build(passages: Path, out: Path, first: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(passages, out, first), capture_output=True, text=True, timeout=LONG, check=False
    )


@contextlib.contextmanager
def encoding(
    passages: Path, out: Path, first: str = ""
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Starts a build; yields the process once it encodes, and what it has printed until then."""
    with subprocess.Popen(command(passages, out, first), stderr=subprocess.PIPE, text=True) as made:
        try:
            assert made.stderr is not None
            said = ""
            for line in made.stderr:
                said += line
                if "encoding passages" in line:
                    break
            yield made, said
        finally:
            made.kill()


@pytest.mark.parametrize("room", [0, 40, 120])
def test_a_full_disk_is_one_line_and_the_same_command_resumes_after_space_is_freed(
    passages_file: Path, tmp_path: Path, room: int
) -> None:
    out = tmp_path / "index"
    # no bytecode, since Python would leave it cut off for all later processes
    limit = f"export PYTHONDONTWRITEBYTECODE=1; ulimit -f {room}"  # in blocks of 512 bytes
    failed = build(passages_file, out, limit)
    assert failed.returncode == 1, failed.stderr
    assert "Traceback" not in failed.stderr
    errors = [line for line in failed.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "room" in errors[0] or "is the disk full?" in errors[0]
    kept = "run the same command again" in failed.stderr
    assert kept == out.with_name("index.partial").exists()
    assert build(passages_file, out).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"index"}


def test_a_build_without_a_terminal_logs_plain_lines(passages_file: Path, tmp_path: Path) -> None:
    said = build(passages_file, tmp_path / "index").stderr
    assert "encoding passages: 12 to do" in said
    assert "encoding passages: 12 of 12 (100 %) in " in said
    assert "\x1b" not in said


def test_a_build_is_killed_and_ended_by_each_signal_and_resumes_each_time(
    many: Path, tmp_path: Path
) -> None:
    """A build started with & in a script ignores Ctrl-C."""
    out = tmp_path / "index"
    with encoding(many, out) as (running, said):
        assert "reading passages" in said
        running.send_signal(signal.SIGKILL)
        assert running.wait(LONG) == -signal.SIGKILL
    for number in (signal.SIGTERM, signal.SIGINT):
        with encoding(many, out, "trap '' INT") as (running, begun):
            running.send_signal(signal.SIGSTOP)
            second = build(many, out)
            assert second.returncode == 1
            assert "another build is writing" in second.stderr
            running.send_signal(number)
            running.send_signal(signal.SIGCONT)
            ended = running.communicate(timeout=LONG)[1]
        assert running.returncode == 130
        assert "reading passages" not in begun
        assert "index.partial keeps the finished work: run the same command again" in ended
        assert not out.exists()
    again = build(many, out)
    assert again.returncode == 0, again.stderr
    assert "reading passages" not in again.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"index", "many.jsonl"}
    assert not any(report.faults for report in verify_index(out, 20, 0.9))
