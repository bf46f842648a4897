"""Commands for snapshots, and a node that starts from one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tenacious import until

from winnow.domain.shard import shard_name

pytestmark = pytest.mark.timeout(300)


def winnow(*arguments: object, limit: str = ":") -> subprocess.CompletedProcess[str]:
    """Runs a command in a shell after another command."""
    command = [sys.executable, "-m", "winnow", *map(str, arguments)]
    return subprocess.run(
        ["sh", "-c", f'{limit}; exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_an_index_is_copied_listed_and_restored(indexes: dict[int, Path], tmp_path: Path) -> None:
    url = tmp_path / "snapshots"
    taken = winnow("index", "snapshot", indexes[2], url)
    assert taken.returncode == 0, taken.stderr
    assert "shard 0 at write 0, shard 1 at write 0" in taken.stdout
    listed = json.loads(winnow("index", "snapshots", url, "--json").stdout)
    assert [len(each["parts"]) for each in listed] == [2]
    table = winnow("index", "snapshots", url).stdout
    assert "2 of 2" in table
    assert listed[0]["name"] in table  # whole, for --snapshot
    restored = winnow("index", "restore", url, tmp_path / "again")
    assert restored.returncode == 0, restored.stderr
    assert winnow("index", "verify", tmp_path / "again").returncode == 0


def test_a_full_disk_is_one_line(indexes: dict[int, Path], tmp_path: Path) -> None:
    failed = winnow("index", "snapshot", indexes[1], tmp_path / "snapshots", limit="ulimit -f 40")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert "for snapshots: " in failed.stderr
    assert winnow("index", "snapshot", indexes[1], tmp_path / "snapshots").returncode == 0
    cut = winnow("index", "restore", tmp_path / "snapshots", tmp_path / "i", limit="ulimit -f 40")
    assert cut.returncode == 1
    assert "free disk space, and run the same command again to resume" in cut.stderr
    assert winnow("index", "restore", tmp_path / "snapshots", tmp_path / "i").returncode == 0
    assert {each.name for each in tmp_path.iterdir()} == {"snapshots", "i"}


def test_a_node_starts_from_a_snapshot_and_later_from_its_pulled_copy(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    url = tmp_path / "snapshots"
    assert winnow("index", "snapshot", indexes[2], url).returncode == 0
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
            until(lambda: '"ready"' in said.read_text() or node.poll() is not None, 120)
        finally:
            node.terminate()
        assert node.wait(60) == 0, said.read_text()
    return said.read_text()
