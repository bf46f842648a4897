"""`winnow shards` lists shards with their nodes, and changes their assignment."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from tenacious import LONG

from winnow.assignment import AssignmentFile
from winnow.catalog import CatalogFile
from winnow.cli.commands import main
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.v1 import cluster_pb2_grpc
from winnow.v1.cluster_pb2 import GetClusterResponse, ReplicaState, ShardState

SERVING = ReplicaState.STATE_SERVING


class Front(cluster_pb2_grpc.ClusterServiceServicer):
    """A front that sees shards on nodes."""

    def __init__(self) -> None:
        self.index_id = "index"
        self.shards = {0: ["a"], 1: ["a"], 2: ["a"]}
        self.strangers = ["b"]
        self.twin = False
        """Whether a second node is named b."""
        self.problem = ""
        """Why node a does not serve a half of a shard."""
        self.next_shards: list[dict[int, list[str]]] = []
        """What later calls see."""
        self.later_strangers: list[str] = []
        """Nodes without shards that later calls see."""
        self.is_starting = False
        """Whether the next call sees no index."""
        self.requested: list[str] = []
        """The index that each call names."""
        self.remaining: list[float] = []
        """Seconds until the deadline of each call."""

    def GetCluster(self, request: Any, context: Any) -> GetClusterResponse:
        self.requested.append(request.index)
        self.remaining.append(context.time_remaining())
        reply = GetClusterResponse(
            index_id=self.index_id,
            built_shards=3,
            shards=[
                ShardState(shard=shard, replicas=map(replica, names))
                for shard, names in self.shards.items()
            ],
            strangers=map(replica, self.strangers),
        )
        if self.problem:
            faulty = replica("a")
            faulty.state, faulty.reason = ReplicaState.STATE_NOT_LOADED, self.problem
            reply.strangers.append(faulty)
        if self.twin:
            other = replica("b")
            other.node_address = "elsewhere:9000"
            reply.strangers.append(other)
        if self.next_shards:
            self.shards = self.next_shards.pop(0)
        if self.is_starting:
            reply, self.is_starting = GetClusterResponse(), False
        else:
            self.strangers += self.later_strangers
            self.later_strangers = []
        return reply


def replica(name: str) -> ReplicaState:
    """A replica on a node; `a!` is one that node a is loading."""
    node = name.removesuffix("!")
    return ReplicaState(
        address=f"10.0.0.1:{ord(node)}",
        state=SERVING if node == name else ReplicaState.STATE_LOADING,
        node=node if node.isalpha() else "",
        node_address=f"{node}:9000",
        passages=1_234,
        sequence=17,
    )


@pytest.fixture
def front() -> Iterator[Front]:
    server, front = grpc.server(ThreadPoolExecutor(2)), Front()
    cluster_pb2_grpc.add_ClusterServiceServicer_to_server(front, server)
    front.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"  # type: ignore[attr-defined]
    server.start()
    yield front
    server.stop(None).wait(LONG)


@pytest.fixture
def run(front: Front, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str, assignment: bool = True) -> tuple[int, str, str]:
        stored = ["--assignment", str(tmp_path / "assignment.json")] if assignment else []
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["shards", *arguments, "--address", front.address, *stored])  # type: ignore[attr-defined]
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


def holders(tmp_path: Path) -> dict[int, tuple[str, ...]]:
    assignment = AssignmentFile(str(tmp_path / "assignment.json")).read()
    assert assignment is not None
    return dict(assignment.holders)


def test_shards_are_listed_without_an_assignment(run: Any) -> None:
    code, out, err = run(assignment=False)
    assert (code, err) == (0, "")
    assert len([line for line in out.splitlines() if " a " in line and "serving" in line]) == 3
    assert "1,234" in out


@pytest.mark.parametrize(
    "words", [[], ["move", "1", "--to", "b"], ["split", "1"], ["spread"]], ids=str
)
def test_every_command_has_the_time_limit_that_its_caller_sets(
    run: Any, front: Front, words: list[str]
) -> None:
    assert run(*words, "--timeout", str(3 * LONG))[0] == 0
    assert min(front.remaining) > 2 * LONG


def test_a_move_creates_the_assignment_from_what_is_served(run: Any, tmp_path: Path) -> None:
    code, out, err = run("move", "1", "--to", "b")
    assert (code, err) == (0, "")
    assert out == "assignment 1: shard 1 moves to b\n"
    assert holders(tmp_path) == {0: ("a",), 1: ("b",), 2: ("a",)}
    listed = json.loads(run("--json")[1])
    assert [(row["shard"], row["node"], row["state"], row["is_assigned"]) for row in listed] == [
        (0, "a", "serving", True),
        (1, "a", "serving", False),
        (1, "b", "assigned", True),
        (2, "a", "serving", True),
        (None, "b", "serving", False),
    ]


def test_a_shard_of_a_named_index_is_moved_in_the_catalog(
    run: Any, front: Front, tmp_path: Path
) -> None:
    file = CatalogFile(str(tmp_path / "assignment.json"))
    docs = CatalogIndex(index_id="index", shards=3, holders=dict.fromkeys(range(3), ("a",)))
    named = Catalog().with_index("docs", docs, {"a": "a:9000"}).with_alias("latest", "docs")
    file.change(lambda _: named)
    code, out, err = run("move", "1", "--to", "b", "--on", "latest")
    assert (code, out, err) == (0, "assignment 3: shard 1 moves to b\n", "")
    changed = file.read()
    assert changed is not None
    assert changed.indexes["docs"].holders == {0: ("a",), 1: ("b",), 2: ("a",)}
    assert changed.nodes == {"a": "a:9000", "b": "b:9000"}
    assert front.requested == ["latest"]
    assert "there is no index 'other'" in run("spread", "--on", "other")[2]


def test_a_move_can_be_awaited(run: Any, front: Front) -> None:
    both = {0: ["a"], 1: ["a", "b"], 2: ["a"]}
    front.next_shards = [front.shards, both, {**both, 1: ["b"]}]
    code, out, err = run("move", "1", "--to", "b", "--wait")
    assert code == 0
    assert out.endswith("3 shards are on the nodes of assignment 1\n")
    assert "Ctrl-C ends only this" in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["move", "9", "--to", "b"], "there is no shard 9: the index has 0, 1, 2"),
        (["move", "1", "--to", "x"], "there is no running node x: choose one of a, b"),
        (["move", "1", "--to", "a"], "node a already has shard 1"),
        (["move", "1", "--to", "b", "--from", "b"], "shard 1 is on a, not on b"),
        (["spread", "--without", "a", "--without", "b"], "no node would remain"),
        (["spread", "--without", "x"], "there is no node x; running nodes: a, b"),
        (["spread", "--replicas", "3"], "--replicas 3 needs 3 nodes; only these may get"),
        (["spread", "--node", "a", "--node", "x"], "--node: x does not run; running nodes: a, b"),
    ],
)
def test_an_impossible_change_is_refused(
    run: Any, tmp_path: Path, arguments: list[str], problem: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert problem in err
    assert not (tmp_path / "assignment.json").exists()


@pytest.mark.parametrize("again", [["move", "1", "--to", "c"], ["spread"]])
def test_a_shard_that_is_still_moving_does_not_move_again(
    run: Any, front: Front, again: list[str]
) -> None:
    front.strangers.append("c")
    run("move", "1", "--to", "b")
    code, _, err = run(*again)
    assert code == 1
    assert "still moving" in err


def test_shards_are_spread_over_all_nodes_and_away_from_one(
    run: Any, front: Front, tmp_path: Path
) -> None:
    code, out, _ = run("spread", "--dry-run")
    assert code == 0
    assert "a -> b" in out
    assert out.endswith("\n1 shard to move\n")
    assert not (tmp_path / "assignment.json").exists()
    run("spread")
    spread = holders(tmp_path)
    assert sorted(names[0] for names in spread.values()) == ["a", "a", "b"]
    front.shards = {shard: list(names) for shard, names in spread.items()}
    run("spread", "--without", "a")
    assert set(holders(tmp_path).values()) == {("b",)}


def test_shards_are_spread_over_named_nodes_once_they_run(
    run: Any, front: Front, tmp_path: Path
) -> None:
    """The others give their shards away, and are listed only while others copy from them."""
    front.is_starting, front.later_strangers = True, ["c"]
    moved = {0: ["c"], 1: ["b"], 2: ["b"]}
    front.next_shards = [front.shards] * 3 + [moved]
    code, _, err = run("spread", "--node", "b", "--node", "c", "--wait")
    assert code == 0
    first, second, *_ = err.splitlines()
    assert first == "waiting for the front node: it serves no index yet"
    assert second == "waiting for nodes: c"
    assert {name for names in holders(tmp_path).values() for name in names} == {"b", "c"}
    assert known_nodes(tmp_path) == {"a", "b", "c"}
    run("spread", "--node", "b", "--node", "c")
    assert known_nodes(tmp_path) == {"b", "c"}


def known_nodes(tmp_path: Path) -> set[str]:
    assignment = AssignmentFile(str(tmp_path / "assignment.json")).read()
    assert assignment is not None
    return set(assignment.nodes)


def test_a_move_is_cancelled_by_moving_the_shard_back(run: Any, tmp_path: Path) -> None:
    run("move", "1", "--to", "b")
    assert run("move", "1", "--to", "a")[0] == 0
    assert holders(tmp_path)[1] == ("a",)


def test_a_shard_whose_node_is_down_does_not_block_the_others(run: Any, front: Front) -> None:
    run("move", "1", "--to", "b")
    front.shards[1] = []
    assert run("move", "2", "--to", "b")[0] == 0


def test_waiting_goes_on_after_an_interrupted_command(run: Any, front: Front) -> None:
    run("move", "1", "--to", "b")
    moved = {0: ["a"], 1: ["b"], 2: ["a"]}
    front.next_shards = [front.shards, moved]
    code, out, _ = run("spread", "--wait")
    assert code == 0
    assert "0 shards to move" in out


def test_a_shard_that_its_node_is_still_loading_is_awaited(run: Any, front: Front) -> None:
    run("move", "1", "--to", "b")
    loading, served = ({0: ["a"], 1: ["b"], 2: [name]} for name in ("a!", "a"))
    front.next_shards = [*[loading] * 8, served]
    assert run("spread", "--wait")[0] == 0
    assert not front.next_shards


def test_two_nodes_with_one_name_are_refused(run: Any, front: Front) -> None:
    front.twin = True
    code, _, err = run("spread")
    assert code == 1
    assert "two nodes are named b (b:9000, elsewhere:9000): stop one" in err


def test_nodes_without_an_assignment_are_named(run: Any, front: Front) -> None:
    front.shards[2] = ["1"]
    code, _, err = run("move", "0", "--to", "b")
    assert code == 1
    assert "no node that follows an assignment serves shard 2" in err


def test_the_assignment_of_another_index_is_refused(run: Any, front: Front) -> None:
    run("move", "1", "--to", "b")
    front.index_id = "another"
    code, _, err = run("spread")
    assert code == 1
    assert "it is of index index, but the front node serves index another" in err
    assert run("spread", "--dry-run")[2].startswith("error: --assignment: it is of index index")


def test_a_shard_is_split_on_its_node(run: Any, front: Front, tmp_path: Path) -> None:
    code, out, _ = run("split", "1")
    assert code == 0
    assert out == "assignment 1: shard 1 is split into shards 5 and 6\n"
    assert holders(tmp_path) == {0: ("a",), 2: ("a",), 5: ("a",), 6: ("a",)}
    rows = json.loads(run("--json")[1])
    assert [(row["shard"], row["state"]) for row in rows if row["is_split"]] == [(1, "serving")]
    assert {row["shard"] for row in rows if row["state"] == "assigned"} == {5, 6}


def test_a_split_can_be_awaited_and_says_why_it_takes_long(run: Any, front: Front) -> None:
    done = {0: ["a"], 2: ["a"], 5: ["a"], 6: ["a"]}
    front.next_shards = [front.shards, front.shards, done]
    front.problem = "no room"
    code, _, err = run("split", "1", "--wait")
    assert code == 0
    assert "node a: no room" in err


def test_halves_move_and_split_like_other_shards(run: Any, front: Front, tmp_path: Path) -> None:
    run("split", "1")
    front.shards = {0: ["a"], 2: ["a"], 5: ["a"], 6: ["a"]}
    assert run("move", "6", "--to", "b")[0] == 0
    assert run("split", "5")[1].endswith("shard 5 is split into shards 13 and 14\n")
    assert holders(tmp_path) == dict.fromkeys((0, 2, 13, 14), ("a",)) | {6: ("b",)}
    front.shards = {0: ["a"], 2: ["a"], 6: ["b"], 13: ["a"], 14: ["a"]}
    assert run("spread", "--without", "b")[0] == 0
    assert set(holders(tmp_path)) == {0, 2, 6, 13, 14}


@pytest.mark.parametrize("shard", ["1", "5", "6"])
def test_a_shard_that_is_being_split_is_not_changed(run: Any, shard: str) -> None:
    run("split", "1")
    assert run("split", shard)[0] != 0
    assert run("spread")[0] == 1
    assert run("move", "1", "--to", "b")[2].endswith("(is being split into 5, 6): wait for it\n")


def test_an_assignment_is_made_after_a_split(run: Any, front: Front, tmp_path: Path) -> None:
    """It was deleted, or the nodes were started with another one."""
    front.shards = {0: ["a"], 2: ["a"], 5: ["a"], 6: ["a"]}
    run("move", "5", "--to", "b")
    assert holders(tmp_path)[5] == ("b",)
