"""What a content node costs, measured on shards so small that it takes no time."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner
from whole_bundle import WHOLE

from winnow.bundle import Bundle, load_bundle
from winnow.cli.commands import build_app
from winnow.content_node.measuring import read_costs
from winnow.content_node.measuring.shard_costs import measure_graph, measure_shard
from winnow.content_node.measuring.synthetic import RandomVectors
from winnow.domain.passage import Passage
from winnow.domain.write import Put
from winnow.passages.encoding import TokenisedPut
from winnow.sizing.timing import parallel_run_ms, relative_spread, time_runs
from winnow.sizing.units import SPREAD_QUANTILES
from winnow.text.tokenizer import Tokens

TEXTS = [
    TokenisedPut(
        Put(Passage(f"p{number}", "title", "some text")),
        Tokens((5,), ((0, 5),)),
        Tokens((6, 7 + number), ((0, 4), (5, 9))),
    )
    for number in range(3)
]


def test_a_made_up_shard_is_a_shard_and_is_measured_whole() -> None:
    found = measure_shard(120, TEXTS, [(5, 6)], RandomVectors(16), threads=1, repetitions=5)
    cost = found.cost
    assert (cost.passages, cost.dimension) == (120, 16)
    # vectors lie in the graph, and once more in the database
    assert cost.disk_bytes_each > 4 * 16
    assert len(found.spread) == len(SPREAD_QUANTILES)


@pytest.mark.graph
def test_a_graph_takes_its_vectors_and_their_links() -> None:
    cost = measure_graph(200, RandomVectors(16), threads=1, repetitions=5)
    assert cost.bytes_each > 4 * 16
    assert cost.search_ms > 0


def test_a_spread_has_quantiles_relative_to_the_median() -> None:
    assert relative_spread([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])[0] == 0.5
    assert relative_spread([[2.0] * 5]) == (1.0,) * len(SPREAD_QUANTILES)


def test_all_is_done_as_often_as_was_said() -> None:
    done: list[int] = []
    assert len(time_runs(lambda: done.append(1), 3)) == 3
    assert len(done) == 4  # once to warm up
    parallel_run_ms(lambda: done.append(1), 2, 3)
    assert len(done) == 4 + 1 + 6


@pytest.fixture
def _timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is done once and takes a millisecond: one real time says little on a busy machine."""

    def milliseconds_of_one(work: Callable[[], object], *_: int) -> list[float]:
        work()
        return [1.0]

    monkeypatch.setattr(read_costs, "time_runs", milliseconds_of_one)
    monkeypatch.setattr(
        read_costs, "parallel_run_ms", lambda work, *_: milliseconds_of_one(work)[0]
    )


@pytest.mark.usefixtures("_timed")
def test_reads_are_measured_with_states_and_without_where_the_reader_has_some(
    bundle: Bundle,
) -> None:
    found = read_costs.measure_reads(bundle, threads=1, repetitions=1)
    assert found.states is not None
    assert [each.tokens for each in found.states.read] == [each.tokens for each in found.by_length]
    assert found.states.bytes_a_token == 4 + 24 * 9
    assert read_costs.measure_reads(load_bundle(WHOLE), threads=1, repetitions=1).states is None


def test_the_command_is_listed_with_the_other_commands_of_an_index() -> None:
    shown = CliRunner().invoke(build_app(["index", "--help"]), ["index", "--help"])
    assert "measure" in shown.output
