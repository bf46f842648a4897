"""`winnow shards init` assigns the shards of a snapshot to empty nodes."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from winnow.assignment import AssignmentFile
from winnow.cli.commands import main
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.content_node.splitting.write_half import write_half
from winnow.domain.partition import halves_of
from winnow.domain.shard import shard_name
from winnow.telemetry.progress import StageProgress

Run = Callable[..., tuple[int, str, str]]
A, B, C = "a=host-a:9000", "b=host-b:9000", "c=host-c:9000"


@pytest.fixture
def run(indexes: dict[int, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    with StageProgress() as progress:
        take_snapshot(indexes[3], str(tmp_path), progress, lambda: datetime.now(UTC))

    def run(*nodes: str, replicas: int = 1, snapshot: Path = tmp_path) -> tuple[int, str, str]:
        capsys.readouterr()
        given = [word for node in nodes for word in ("--node", node)]
        flags = ["--snapshot", str(snapshot), "--assignment", str(tmp_path / "assignment.json")]
        with pytest.raises(SystemExit) as ended:
            main(["shards", "init", *given, *flags, "--replicas", str(replicas)])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def test_each_shard_of_a_snapshot_is_assigned_to_nodes(run: Run, tmp_path: Path) -> None:
    assert run(A, B, C, replicas=2) == (0, "assignment 1: 3 shards on 3 nodes\n", "")
    assignment = AssignmentFile(str(tmp_path / "assignment.json")).read()
    assert assignment is not None
    assert assignment.nodes == {name: f"host-{name}:9000" for name in "abc"}
    assert sorted(assignment.holders) == [0, 1, 2]
    assert set(assignment.loads().values()) == {2}


def test_the_halves_of_a_shard_in_a_snapshot_are_assigned(
    run: Run, indexes: dict[int, Path], tmp_path: Path
) -> None:
    index = Path(shutil.copytree(indexes[3], tmp_path / "split"))
    parent = index / shard_name(2, 3)
    for half in halves_of(2, 3):
        (index / shard_name(half, 3)).mkdir()
        write_half(parent, parent, half, index / shard_name(half, 3), following=False)
    shutil.rmtree(parent)
    with StageProgress() as progress:
        take_snapshot(index, str(tmp_path / "of-split"), progress, lambda: datetime.now(UTC))
    assert run(A, B, snapshot=tmp_path / "of-split")[0] == 0
    assignment = AssignmentFile(str(tmp_path / "assignment.json")).read()
    assert assignment is not None
    assert sorted(assignment.holders) == [0, 1, 7, 8]


def test_an_assignment_that_exists_stays_although_nodes_are_added(run: Run, tmp_path: Path) -> None:
    run(A, B)
    stored = (tmp_path / "assignment.json").read_bytes()
    code, out, _ = run(A, B, C, snapshot=tmp_path / "gone")
    assert (code, out) == (0, "assignment 1 exists already and is not changed\n")
    assert (tmp_path / "assignment.json").read_bytes() == stored


def test_a_node_that_has_shards_must_be_given(run: Run) -> None:
    run(A, B)
    code, _, err = run(A)
    assert code == 1
    assert "is assigned to b, which --node does not name: start that node" in err


@pytest.mark.parametrize(
    ("nodes", "replicas", "problem"),
    [
        (["a"], 1, "'a' is not NAME=HOST:PORT"),
        (["=host:9000"], 1, "'=host:9000' has no name"),
        ([A, "a=other:9000"], 1, "gives a twice"),
        ([A], 2, "2 replicas need 2 nodes, but --node names 1"),
    ],
)
def test_nodes_that_cannot_work_are_refused(
    run: Run, tmp_path: Path, nodes: list[str], replicas: int, problem: str
) -> None:
    code, _, err = run(*nodes, replicas=replicas)
    assert code == 2
    assert problem in err
    assert not (tmp_path / "assignment.json").exists()
