"""Which processes a plan starts, and with which flags."""

from pathlib import Path

from winnow.cli.local.plan import LocalPlan, commands

SHARDS = [Path("index/0"), Path("index/1")]
NODES = ["127.0.0.1:9001", "127.0.0.1:9002"]


def planned(plan: LocalPlan, metrics: tuple[str, ...] = ()) -> dict[str, str]:
    fronts = [plan.listen, *plan.more_fronts]
    return {
        name: " ".join(flags)
        for name, flags in commands(plan, SHARDS, fronts, NODES, metrics).items()
    }


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
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", seen_as={1: "127.0.0.1:7"})
    assert f"--shards {NODES[0]} --shards 127.0.0.1:7 " in planned(plan)["front"]


def test_a_cluster_that_is_fed_has_one_front_that_takes_passages() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080")
    fronts = ["127.0.0.1:8080", "127.0.0.1:8081"]
    found = commands(plan, SHARDS, fronts, NODES, (), feed="127.0.0.1:8090")
    flags = {name: "--feed-listen 127.0.0.1:8090" in " ".join(own) for name, own in found.items()}
    assert flags == {"node 0": False, "node 1": False, "front": True, "front 1": False}
    assert [name for name, own in found.items() if "--feed" in own] == ["node 0", "node 1"]


def test_one_front_serves_http() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080")
    fronts = ["127.0.0.1:8080", "127.0.0.1:8081"]
    found = commands(plan, SHARDS, fronts, NODES, (), http="127.0.0.1:8088")
    told = [name for name, own in found.items() if "--http-listen 127.0.0.1:8088" in " ".join(own)]
    assert told == ["front"]


def test_the_first_front_tells_its_health_where_it_is_told_to() -> None:
    plan = LocalPlan(
        Path("index"), Path("b"), "h:1", health_listen="127.0.0.1:7", more_fronts=("h:2",)
    )
    found = planned(plan)
    assert "--health-listen 127.0.0.1:7" in found["front"]
    assert not any("--health-listen" in found[name] for name in ("front 1", "node 0", "node 1"))
