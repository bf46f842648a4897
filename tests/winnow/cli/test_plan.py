"""The processes that a plan starts, their flags, and their threads."""

from pathlib import Path

import pytest

from winnow.cli.local.plan import LocalPlan, process_commands, shards_of_nodes, threads_per_node

SHARDS = [[Path("index/0")], [Path("index/1")]]
PLAN = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080")
NODES = ["127.0.0.1:9001", "127.0.0.1:9002"]


def planned(plan: LocalPlan, metrics: tuple[str, ...] = ()) -> dict[str, str]:
    found = process_commands(plan, SHARDS, NODES, metrics)
    return {name: " ".join(flags) for name, flags in found.items()}


def test_every_node_serves_its_shard_and_the_front_asks_them_all() -> None:
    found = planned(LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", reader_threads=2))
    common = "--bundle b --drain-linger 0.0"
    assert found == {
        "node 0": f"node --shard index/0 --listen {NODES[0]} --reader-threads 2 {common}",
        "node 1": f"node --shard index/1 --listen {NODES[1]} --reader-threads 2 {common}",
        "front": f"front --listen 127.0.0.1:8080 --shards {NODES[0]} --shards {NODES[1]} {common}",
    }


def test_the_settings_file_reaches_every_process() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", config=Path("w.toml"))
    assert all("--config w.toml" in line for line in planned(plan).values())


def test_every_process_has_metrics_of_its_own() -> None:
    plan = LocalPlan(
        Path("index"), Path("b"), "[::1]:8080", "[::1]:9100", more_fronts=("[::1]:8081",)
    )
    found = planned(plan, ("[::1]:9101", "[::1]:9102"))
    asked = {name: line.partition("--metrics-listen ")[2][:10] for name, line in found.items()}
    assert asked == {
        "node 0": "[::1]:9101",
        "node 1": "[::1]:9102",
        "front": "[::1]:9100",
        "front 1": "",
    }


def test_the_front_may_find_a_node_elsewhere() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", proxied_nodes={1: "127.0.0.1:7"})
    assert f"--shards {NODES[0]} --shards 127.0.0.1:7 " in planned(plan)["front"]


def test_a_cluster_that_is_fed_has_one_front_that_takes_passages() -> None:
    plan = LocalPlan(
        Path("index"),
        Path("b"),
        "127.0.0.1:8080",
        more_fronts=("127.0.0.1:8081",),
        feed_listen="127.0.0.1:8090",
    )
    found = process_commands(plan, SHARDS, NODES)
    flags = {name: "--feed-listen 127.0.0.1:8090" in " ".join(own) for name, own in found.items()}
    assert flags == {"node 0": False, "node 1": False, "front": True, "front 1": False}
    assert [name for name, own in found.items() if "--feed" in own] == ["node 0", "node 1"]


def test_one_front_serves_http() -> None:
    plan = LocalPlan(
        Path("index"),
        Path("b"),
        "127.0.0.1:8080",
        more_fronts=("127.0.0.1:8081",),
        http_listen="127.0.0.1:8088",
    )
    told = [name for name, own in planned(plan).items() if "--http-listen 127.0.0.1:8088" in own]
    assert told == ["front"]


def test_the_first_front_tells_its_health_where_it_is_told_to() -> None:
    plan = LocalPlan(
        Path("index"), Path("b"), "h:1", health_listen="127.0.0.1:7", more_fronts=("h:2",)
    )
    found = planned(plan)
    assert "--health-listen 127.0.0.1:7" in found["front"]
    assert not any("--health-listen" in found[name] for name in ("front 1", "node 0", "node 1"))


@pytest.mark.parametrize(
    ("cores", "nodes", "each"), [(2, 3, 1), (2, 1, 2), (8, 3, 3), (64, 4, 16), (1, 100, 1)]
)
def test_the_nodes_of_one_machine_share_its_cores(cores: int, nodes: int, each: int) -> None:
    assert threads_per_node(PLAN, nodes, {}, cores) == each


@pytest.mark.parametrize("field", ["threads", "reader_threads"])
def test_threads_set_by_a_variable_or_a_file_are_kept(field: str, tmp_path: Path) -> None:
    variable = f"WINNOW_NODE_{field.upper()}"
    assert threads_per_node(PLAN, 3, {variable: "2"}, 8) is None
    file = tmp_path / "winnow.toml"
    file.write_text(f"[node]\n{field} = 2\n")
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", config=file)
    assert threads_per_node(plan, 3, {}, 8) is None
    assert threads_per_node(PLAN, 3, {"WINNOW_CONFIG": str(file)}, 8) is None


@pytest.mark.parametrize("flags", [("--threads", "2"), ("--reader-threads=2",)])
def test_threads_set_by_flags_of_the_nodes_are_kept(flags: tuple[str, ...]) -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", node=flags)
    assert threads_per_node(plan, 3, {}, 8) is None


def test_threads_set_by_the_plan_are_kept() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", reader_threads=2)
    assert threads_per_node(plan, 3, {}, 8) is None


def test_every_node_is_told_its_threads() -> None:
    found = process_commands(PLAN, [[Path("0")]], ["127.0.0.1:9001"], threads=3)
    assert "--threads 3 --reader-threads 3" in " ".join(found["node 0"])
    assert "threads" not in " ".join(found["front"])


@pytest.mark.parametrize(
    ("nodes", "replicas", "shared"),
    [
        (0, 1, ["0", "1", "2"]),
        (3, 1, ["0", "1", "2"]),
        (2, 1, ["02", "1"]),
        (1, 2, ["012", "012"]),
        (2, 2, ["02", "02", "1", "1"]),
        (0, 0, []),
    ],
)
def test_nodes_share_the_shards(nodes: int, replicas: int, shared: list[str]) -> None:
    own = shards_of_nodes([Path("0"), Path("1"), Path("2")], nodes, replicas)
    assert ["".join(map(str, each)) for each in own] == shared


def test_a_node_is_given_all_its_shards() -> None:
    found = process_commands(PLAN, [[Path("0"), Path("1")]], ["127.0.0.1:9001"])
    assert found["node 0"][:6] == ["node", "--shard", "0", "--shard", "1", "--listen"]
