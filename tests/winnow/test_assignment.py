"""The assignment of shards to nodes, and its file."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from winnow.assignment import AssignmentFile
from winnow.domain.assignment import Assignment
from winnow.errors import ArtefactError, InvalidRequestError, UnavailableError
from winnow.storage import remote_lock

FIRST = Assignment(
    index_id="index",
    shards=3,
    version=1,
    nodes={"a": "a:9000", "b": "b:9000"},
    holders={0: ("a",), 1: ("a", "b"), 2: ("b",)},
)

NODES = {"a": "a:9000", "b": "b:9000", "c": "c:9000"}


def test_a_move_changes_one_shard_and_the_version() -> None:
    moved = FIRST.with_move(0, "", "c", NODES)
    assert moved.version == 2
    assert moved.holders == {0: ("c",), 1: ("a", "b"), 2: ("b",)}
    assert moved.nodes == NODES
    assert FIRST.with_move(1, "b", "c", NODES).holders[1] == ("a", "c")
    assert (moved.of_node("a"), moved.of_node("c")) == ({1}, {0})


def test_a_node_stays_until_it_has_no_shards_and_does_not_run() -> None:
    """Until then other nodes copy its shards."""
    running = {"a": "a:9001", "c": "c:9000"}
    moving = FIRST.with_move(2, "", "a", running)
    assert moving.nodes == {**running, "b": "b:9000"}
    assert moving.with_move(1, "b", "c", NODES).nodes == NODES
    last = moving.with_move(1, "b", "c", running)
    assert last.nodes == running
    assert last.loads() == {"a": 3, "c": 1}


@pytest.mark.parametrize(
    ("shard", "node", "to", "problem"),
    [
        (7, "", "c", "there is no shard 7: the index has 0, 1, 2"),
        (0, "", "a", "node a already has shard 0"),
        (0, "", "d", "there is no running node d: choose one of a, b, c"),
        (1, "", "c", "shard 1 is on nodes a, b: name one by --from"),
        (0, "b", "c", "shard 0 is on a, not on b"),
    ],
)
def test_an_impossible_move_is_refused(shard: int, node: str, to: str, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        FIRST.with_move(shard, node, to, NODES)


@pytest.mark.parametrize(
    ("holders", "problem"),
    [
        ({0: ("a",), 1: ("a",)}, "the partition lacks shard 2"),
        ({0: ("a",), 1: (), 2: ("a",)}, r"holders\[1\]: shard 1 has no node"),
        ({0: ("a",), 1: ("x",), 2: ("a",)}, r"shard 1 has node x, which is not among the nodes"),
        ({0: ("a",), 1: ("a", "a"), 2: ("a",)}, r"holders\[1\]: shard 1 has a node twice"),
    ],
)
def test_an_assignment_that_names_nobody_is_refused(
    holders: dict[int, tuple[str, ...]], problem: str
) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        Assignment(index_id="index", shards=3, version=1, nodes=FIRST.nodes, holders=holders)


def test_what_was_published_is_read(tmp_path: Path) -> None:
    file = AssignmentFile(str(tmp_path / "new" / "assignment.json"))
    assert file.read() is None
    assert file.change(lambda before: before or FIRST) == FIRST
    changed = file.change(lambda before: (before or FIRST).with_move(0, "", "b", NODES))
    assert file.read() == changed


def test_an_assignment_at_a_url_is_read(tmp_path: Path) -> None:
    file = AssignmentFile(f"memory://{tmp_path}/assignment.json")
    assert file.change(lambda _: FIRST) == file.read() == FIRST


def test_the_loser_of_two_writers_at_a_url_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock counts as abandoned, as that of a writer that was paused."""
    for name in ("_ABANDONED_SECONDS", "_POLL_SECONDS", "_SETTLE_SECONDS"):
        monkeypatch.setattr(remote_lock, name, 0.0)
    url = f"memory://{tmp_path}/assignment.json"
    file, other = AssignmentFile(url), AssignmentFile(url)
    write = file._storage.write

    def overtaken(path: str, content: bytes) -> None:
        write(path, content)
        other.change(lambda _: FIRST.with_move(0, "", "b", NODES))

    file._storage.write = overtaken  # type: ignore[method-assign]
    with pytest.raises(UnavailableError, match="changed by another writer"):
        file.change(lambda _: FIRST)


def _changed(**values: object) -> Callable[[dict[str, object]], object]:
    return lambda content: {**content, **values}


@pytest.mark.parametrize(
    "damage",
    [_changed(version=2), _changed(holders={}), lambda _: [], lambda _: {}, _changed(checksum=1)],
)
def test_a_damaged_file_is_refused_by_name(
    tmp_path: Path, damage: Callable[[dict[str, object]], object]
) -> None:
    path = tmp_path / "assignment.json"
    file = AssignmentFile(str(path))
    file.change(lambda _: FIRST)
    path.write_text(json.dumps(damage(json.loads(path.read_text()))))
    with pytest.raises(ArtefactError, match=r"assignment\.json is damaged"):
        file.read()
    path.write_text("{")
    with pytest.raises(ArtefactError, match=r"assignment\.json is damaged"):
        file.read()
