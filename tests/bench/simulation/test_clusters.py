"""Simulated clusters: what questions take, and what the policies do there."""

import random
from pathlib import Path

import pytest
import simpy
from units_made import units

from bench.faults.quantiles import Estimate
from bench.simulation import tails
from bench.simulation.cluster import Layout, on_many_machines, on_one_machine
from bench.simulation.compare import Compared, row
from bench.simulation.costs import Costs, Pauses
from bench.simulation.front import Answered, Asked
from bench.simulation.load import closed_loop, made_up, on_machine, open_loop
from bench.simulation.measured import Known
from bench.simulation.pages import replaced
from bench.simulation.plot import plot
from winnow.domain.layout import shard_of
from winnow.stateless.policy.hedging import HedgeSettings
from winnow.stateless.policy.waiting import WaitingSettings
from winnow.stateless.replicas.replicated import ReplicaPolicies

NONE = Pauses()
UNHEDGED = ReplicaPolicies(hedge=HedgeSettings(budget=0.0))


def costs(pauses: Pauses = NONE) -> Costs:
    return Costs(units(), 10_000, 384, random.Random(1), pauses)


def answered(layout: Layout, number: int, pauses: Pauses = NONE) -> tuple[list[Answered], int]:
    env, own = simpy.Environment(), costs(pauses)
    front, tally = on_many_machines(env, own, layout)
    asked = -(-layout.shards // layout.fan) if layout.fan else layout.shards
    questions = made_up(own.chance, asked, 3, (100,))
    return open_loop(env, front, questions, 2.0, number, own.chance), tally.hedges


def test_one_question_takes_what_its_parts_take() -> None:
    env, own = simpy.Environment(), costs()
    front, machine = on_one_machine(env, own, 4, 1, 4)
    asked = iter([Asked(10, ((0, 100), (0, 100)))])
    (found,) = closed_loop(env, front, asked, 1, 1, on_machine(env, machine, own.client))
    # client, front, encoder; a retrieval and a read, each with its calls, and the question's own
    # half; what one reply costs
    parts = 1 + 2 + 2 + (0.25 + 1 + 1) + (0.5 + 1 + 1 + 10) + 2 * 0.001
    assert found.seconds == pytest.approx(parts / 1e3)
    assert found.coverage == 1.0


def test_clients_share_the_cores_of_a_machine() -> None:
    env, own = simpy.Environment(), costs()
    front, machine = on_one_machine(env, own, 1, 2, 1)
    asked = made_up(own.chance, 2, 2, (100,))
    found = closed_loop(env, front, asked, 4, 60, on_machine(env, machine, own.client))
    assert machine.worked <= sum(each.seconds for each in found)
    # by Little's law: four questions are there, one core does their work
    work = 1 + 2 + 2 + 2 * (0.25 + 2 + 0.002) + 20 + 1.5 * (0.5 + 1 + 1)
    mean = sum(each.seconds for each in found[10:]) / len(found[10:])
    assert mean == pytest.approx(4 * work / 1e3, rel=0.1)


def test_hedges_beat_pauses() -> None:
    pauses = Pauses(0.02, 0.5)
    without, none = answered(Layout(4, replicas=2, policies=UNHEDGED), 300, pauses)
    hedged, some = answered(Layout(4, replicas=2), 300, pauses)
    assert none == 0 < some
    assert p95(hedged) < p95(without) / 2


def test_who_waits_for_fewer_shards_waits_less_and_covers_less() -> None:
    pauses = Pauses(0.02, 0.5)
    patient, _ = answered(Layout(16, policies=UNHEDGED), 100, pauses)
    waiting = WaitingSettings(0.9, 0.0, 0.02)
    hasty, _ = answered(Layout(16, policies=UNHEDGED, waiting=waiting), 100, pauses)
    assert p95(hasty) < 0.7 * p95(patient)
    assert min(each.coverage for each in hasty) >= 0.9
    assert max(each.coverage for each in patient) == 1.0


def test_middle_nodes_take_work_from_the_front() -> None:
    one, _ = answered(Layout(128, policies=UNHEDGED), 10)
    two, _ = answered(Layout(128, policies=UNHEDGED, fan=16), 10)
    assert p95(two) < p95(one)


def test_what_does_not_answer_in_time_is_left_out() -> None:
    found, _ = answered(Layout(2, policies=UNHEDGED), 20, Pauses(0.5, 1e4))
    assert min(each.coverage for each in found) < 1
    assert max(each.seconds for each in found) < 2.1


def test_a_course_is_simulated_and_drawn(tmp_path: Path) -> None:
    points = [
        tails.point(units(), course, shards, 40) for course in tails.COURSES for shards in (4,)
    ]
    assert all(each.p99 >= each.p50 > 0 for each in points)
    plot(points, tmp_path / "tails.svg")
    assert "hedging" in (tmp_path / "tails.svg").read_text()


def test_questions_find_their_passages_where_the_index_has_them() -> None:
    known = Known("who", 5, (("a", 100), ("b", 110)))
    for shards in (1, 8):
        places = [(shard_of("a", shards), 100), (shard_of("b", shards), 110)]
        assert list(known.over(shards).reads) == places


def test_a_comparison_says_how_far_off_the_simulation_is() -> None:
    seen = Compared(2, 1, 500, Estimate(20, 19, 21), Estimate(40, 38, 44), 22.0, 38.0, 50.0, 51.0)
    assert seen.off == pytest.approx((0.1, -0.05))
    assert "| +10% | -5% |" in row(seen)


def test_a_part_of_a_page_is_replaced_and_the_rest_stays() -> None:
    page = "a\n<!-- one: made -->\nold\n<!-- end -->\nb\n<!-- two: made -->\nold\n<!-- end -->\n"
    made = replaced(page, "two", ["new", "lines"])
    assert made.count("old") == 1
    assert "new\nlines" in made
    assert replaced(made, "two", ["new", "lines"]) == made
    with pytest.raises(ValueError, match="three"):
        replaced(page, "three", [])


def test_the_page_has_every_part() -> None:
    page = (Path(__file__).parents[3] / "docs" / "sizing.md").read_text(encoding="utf-8")
    for name in ("plan", "units", "fronts", "compared", "tails"):
        replaced(page, name, [])


def p95(found: list[Answered]) -> float:
    return sorted(each.seconds for each in found)[int(0.95 * len(found))]
