"""How many threads each of several content nodes of one machine gets."""

from pathlib import Path

import pytest

from winnow.cli.local.cores import threads_each
from winnow.cli.local.plan import LocalPlan, commands

PLAN = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080")


@pytest.mark.parametrize(
    ("cores", "nodes", "each"), [(2, 3, 1), (2, 1, 2), (8, 3, 3), (64, 4, 16), (1, 100, 1)]
)
def test_the_nodes_of_one_machine_share_its_cores(cores: int, nodes: int, each: int) -> None:
    assert threads_each(PLAN, nodes, {}, cores) == each


@pytest.mark.parametrize("field", ["threads", "reader_threads"])
def test_what_a_variable_or_a_file_says_is_left_alone(field: str, tmp_path: Path) -> None:
    variable = f"WINNOW_NODE_{field.upper()}"
    assert threads_each(PLAN, 3, {variable: "2"}, 8) is None
    file = tmp_path / "winnow.toml"
    file.write_text(f"[node]\n{field} = 2\n")
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", config=file)
    assert threads_each(plan, 3, {}, 8) is None
    assert threads_each(PLAN, 3, {"WINNOW_CONFIG": str(file)}, 8) is None


@pytest.mark.parametrize("flags", [("--threads", "2"), ("--reader-threads=2",)])
def test_what_the_flags_of_the_nodes_say_is_left_alone(flags: tuple[str, ...]) -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", node=flags)
    assert threads_each(plan, 3, {}, 8) is None


def test_what_the_plan_says_is_left_alone() -> None:
    plan = LocalPlan(Path("index"), Path("b"), "127.0.0.1:8080", reader_threads=2)
    assert threads_each(plan, 3, {}, 8) is None


def test_every_node_is_told_its_threads() -> None:
    found = commands(PLAN, [Path("0")], ["127.0.0.1:8080"], ["127.0.0.1:9001"], (), 3)
    assert "--threads 3 --reader-threads 3" in " ".join(found["node 0"])
    assert "threads" not in " ".join(found["front"])
