"""The machines of a plan, and the reasons for them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result
from units_made import units

from winnow.cli.commands import build_app
from winnow.cli.plan.planning import PlanRequest, explain_nodes, fastest_plan, smallest_plan
from winnow.errors import WinnowError

LARGE = PlanRequest(passages=21e6, dimension=768, qps=1, p99_ms=2_000)


def test_a_quiet_index_has_as_many_nodes_as_its_memory_takes() -> None:
    made = smallest_plan(units(), LARGE)
    assert made is not None
    # 3.67 KB each, in 14.4 GiB less the models
    assert made.nodes == made.for_memory == 6
    assert made.memory_bytes < LARGE.node_bytes
    assert explain_nodes(made, LARGE).startswith("memory")


def test_an_index_that_is_fed_has_room_for_two_generations() -> None:
    made = smallest_plan(units(), replace(LARGE, fed=True))
    assert made is not None
    assert made.shards == 11


def test_a_busy_index_has_as_many_nodes_as_its_reads_take() -> None:
    wanted = replace(LARGE, passages=1e5, qps=100)
    made = smallest_plan(units(), wanted)
    assert made is not None
    assert made.busy <= wanted.max_utilisation
    assert explain_nodes(made, wanted).startswith("load")
    half = smallest_plan(units(), replace(wanted, qps=50))
    assert half is not None
    assert half.nodes < made.nodes


def test_states_take_disk_and_building_and_save_reading() -> None:
    wanted = replace(LARGE, passages=1e5, qps=100, tokens=150)
    without, made = (
        smallest_plan(units(), wanted),
        smallest_plan(units(), replace(wanted, states=True)),
    )
    assert without is not None
    assert made is not None
    assert without.served.read == 15.0
    assert made.served.read == pytest.approx(6.0 / 0.8)
    assert made.nodes < without.nodes
    assert made.shards * made.disk_bytes - without.shards * without.disk_bytes == pytest.approx(
        2 * 1e5 * 138 * 400
    )
    assert made.build_hours - without.build_hours == pytest.approx(1e5 * 6.9 / 4 / 3.6e6)


def test_units_without_states_plan_none() -> None:
    known = units()
    unknown = known.model_copy(update={"node": known.node.model_copy(update={"states": None})})
    assert smallest_plan(unknown, LARGE) is not None
    with pytest.raises(ValueError, match="leave out --states"):
        smallest_plan(unknown, replace(LARGE, states=True))


def test_a_low_latency_needs_more_nodes_than_memory_and_load_do() -> None:
    wanted = replace(LARGE, passages=1e5, p99_ms=45)
    made = smallest_plan(units(), wanted)
    assert made is not None
    assert made.p99_ms <= 45
    assert explain_nodes(made, wanted).startswith("latency")


def test_replicas_and_fronts_are_never_fewer_than_wanted() -> None:
    made = smallest_plan(units(), replace(LARGE, replicas=2, fronts=3))
    assert made is not None
    assert made.replicas >= 2
    assert made.fronts == 3


def test_an_impossible_latency_has_no_plan_but_a_fastest_one() -> None:
    wanted = replace(LARGE, p99_ms=5)
    assert smallest_plan(units(), wanted) is None
    assert fastest_plan(units(), wanted).p99_ms > 5


def test_nodes_too_small_for_the_models_are_an_error() -> None:
    with pytest.raises(ValueError, match="give the nodes more memory"):
        smallest_plan(units(), replace(LARGE, node_bytes=1e8))


@pytest.mark.parametrize("passages", [1e12, 1e308])
def test_more_passages_than_any_index_has_are_an_error(passages: float) -> None:
    with pytest.raises(ValueError, match="passages do not fit into 4,096 nodes of 16 GiB"):
        smallest_plan(units(), replace(LARGE, passages=passages))


def run(*arguments: str) -> Result:
    words = ["plan", *arguments]
    return CliRunner().invoke(build_app(words), words, env={"COLUMNS": "200"})


@pytest.fixture
def costs(tmp_path: Path) -> str:
    path = tmp_path / "units.json"
    path.write_text(units().model_dump_json())
    return str(path)


ASKED = ("--passages", "21e6", "--dimension", "768", "--qps", "100")


def test_the_command_says_what_is_needed_and_what_drives_it(costs: str) -> None:
    shown = run(*ASKED, "--p99", "300ms", "--units", costs)
    assert shown.exit_code == 0, shown.output
    for said in ("content nodes", "front nodes", "p99", "driven by", "made up"):
        assert said in shown.output


def test_it_says_that_early_stopping_is_not_included_unless_a_mean_is_given(costs: str) -> None:
    asked = (*ASKED, "--p99", "300ms", "--units", costs)
    whole, mean = run(*asked).output, run(*asked, "--passages-to-read", "4").output
    assert "to read 10 passages" in whole
    assert "to read 4 passages" in mean
    assert ["stopping" in each for each in (whole, mean)] == [True, False]


def test_the_command_prints_json_for_programs() -> None:
    shown = run(*ASKED, "--p99", "1s", "--json")
    assert shown.exit_code == 0, shown.output
    made = json.loads(shown.output)
    assert made["nodes"] == made["shards"] * made["replicas"]


def test_the_command_says_what_would_help_where_nothing_is_in_time(costs: str) -> None:
    shown = run(*ASKED, "--p99", "3ms", "--units", costs)
    assert isinstance(shown.exception, WinnowError)
    assert "read fewer passages" in str(shown.exception)


@pytest.mark.parametrize(
    ("option", "value"),
    [("--passages", "0.5"), ("--p99", "soon"), ("--node-memory", "16"), ("--passages", "1e999")],
)
def test_a_quantity_that_is_none_is_refused_by_its_option(option: str, value: str) -> None:
    given = {"--passages": "1e6", "--qps": "1", option: value}
    shown = run(*(word for pair in given.items() for word in pair))
    assert shown.exit_code == 2
    assert option in shown.output
    assert repr(value) in shown.output
