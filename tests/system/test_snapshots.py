"""Commands for snapshots, and a node that starts from one.

Commands run in this process, except those with a limit on the size of files, and the node.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import InProcess
from tenacious import LONG, until

from winnow.domain.shard import shard_name


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Runs commands in this process."""
    return InProcess(capsys, monkeypatch)


def limited(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command that may write no file of more than 20 KiB.

    It writes no bytecode, since Python would leave it cut off for all later processes.
    """
    command = [sys.executable, "-m", "winnow", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", 'export PYTHONDONTWRITEBYTECODE=1; ulimit -f 40; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


def test_an_index_is_copied_listed_and_restored(
    indexes: dict[int, Path], tmp_path: Path, here: InProcess
) -> None:
    url = tmp_path / "snapshots"
    taken = here("index", "snapshot", str(indexes[2]), str(url))
    assert taken.returncode == 0, taken.stderr
    assert "shard 0 at write 0, shard 1 at write 0" in taken.stdout
    listed = json.loads(here("index", "snapshots", str(url), "--json").stdout)
    assert [len(each["parts"]) for each in listed] == [2]
    table = here("index", "snapshots", str(url)).stdout
    assert "2 of 2" in table
    assert listed[0]["name"] in table  # whole, for --snapshot
    restored = here("index", "restore", str(url), str(tmp_path / "again"))
    assert restored.returncode == 0, restored.stderr
    assert here("index", "verify", str(tmp_path / "again")).returncode == 0


def test_a_full_disk_is_one_line(indexes: dict[int, Path], tmp_path: Path, here: InProcess) -> None:
    failed = limited("index", "snapshot", indexes[1], tmp_path / "snapshots")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert "for snapshots: " in failed.stderr
    assert here("index", "snapshot", str(indexes[1]), str(tmp_path / "snapshots")).returncode == 0
    cut = limited("index", "restore", tmp_path / "snapshots", tmp_path / "i")
    assert cut.returncode == 1
    assert "free disk space, and run the same command again to resume" in cut.stderr
    assert (
        here("index", "restore", str(tmp_path / "snapshots"), str(tmp_path / "i")).returncode == 0
    )
    assert {each.name for each in tmp_path.iterdir()} == {"snapshots", "i"}


def test_a_node_starts_from_a_snapshot_and_later_from_its_pulled_copy(
    indexes: dict[int, Path], tmp_path: Path, here: InProcess
) -> None:
    url = tmp_path / "snapshots"
    assert here("index", "snapshot", str(indexes[2]), str(url)).returncode == 0
    said = ready(f"{url}/{shard_name(1, 2)}", tmp_path / "shard")
    assert "shard restored" in said
    (url / "snapshots").rename(tmp_path / "elsewhere")
    said = ready(f"s3x://nowhere/{shard_name(1, 2)}", tmp_path / "shard")
    assert "snapshots unreachable; serving the shard on disk" in said


def ready(url: str, shard: Path) -> str:
    """Starts a node; returns its log lines until it is ready."""
    command = [sys.executable, "-m", "winnow", "node", "--pull", url, "--shard", str(shard)]
    command += ["--listen", "127.0.0.1:0", "--threads", "1"]
    said = shard.with_name("said.log")
    with said.open("w") as log, subprocess.Popen(command, stderr=log) as node:
        try:
            until(lambda: '"ready"' in said.read_text() or node.poll() is not None)
        finally:
            node.terminate()
        assert node.wait(LONG) == 0, said.read_text()
    return said.read_text()
