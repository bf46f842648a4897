"""`winnow index build` in a separate process: full disks, signals, logs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tenacious import until

pytestmark = pytest.mark.timeout(300)
TEXT = "The quick brown fox jumps over the lazy dog again and again."


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Writes passages whose encoding takes some seconds."""
    path = tmp_path / "many.jsonl"
    rows = (json.dumps({"id": str(n), "text": f"{n} {TEXT}"}) for n in range(1100))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def command(passages: Path, out: Path, first: str = ":") -> list[str]:
    """Starts a build in a shell that runs the command `first`."""
    build = [sys.executable, "-m", "winnow", "index", "build", "--passages", str(passages)]
    build += ["--out", str(out), "--threads", "1"]
    return ["sh", "-c", f'{first}; exec "$@"', "sh", *build]


def build(passages: Path, out: Path, first: str = ":") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(passages, out, first), capture_output=True, text=True, timeout=120, check=False
    )


def encoding(out: Path) -> bool:
    """Whether a build has read every passage."""
    import sqlite3

    staging = out.with_name(out.name + ".partial") / "staging.sqlite"
    if not staging.exists():
        return False
    connection = sqlite3.connect(f"file:{staging}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT 1 FROM plan WHERE key = 'staged'").fetchone() is not None
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("room", [0, 40, 120])
def test_a_full_disk_is_one_line_and_the_same_command_resumes_after_space_is_freed(
    passages_file: Path, tmp_path: Path, room: int
) -> None:
    out = tmp_path / "index"
    failed = build(passages_file, out, f"ulimit -f {room}")  # in blocks of 512 bytes
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_build_in_the_background_ends_on_a_signal_and_resumes_later(
    many: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """A build started with & in a script ignores Ctrl-C."""
    out = tmp_path / "index"
    ignoring = command(many, out, "trap '' INT")
    running = subprocess.Popen(ignoring, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: encoding(out), 120)
        running.send_signal(signal.SIGSTOP)
        second = build(many, out)
        assert second.returncode == 1
        assert "another build is writing" in second.stderr
        running.send_signal(number)
        running.send_signal(signal.SIGCONT)
        said = running.communicate(timeout=60)[1]
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert "index.partial keeps the finished work: run the same command again" in said
    assert not out.exists()
    again = build(many, out)
    assert again.returncode == 0, again.stderr
    assert "reading passages" not in again.stderr


def test_a_killed_build_resumes(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    running = subprocess.Popen(command(many, out), stderr=subprocess.DEVNULL)
    until(lambda: encoding(out), 120)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    again = build(many, out)
    assert again.returncode == 0, again.stderr
    assert "reading passages" not in again.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"index", "many.jsonl"}
