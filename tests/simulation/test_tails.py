"""Simulated latencies follow from the durations of work and the cores that it shares."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from simulated import simulate
from units_made import serving_units, units

from simulation.process import Process
from simulation.tails.costs import Costs, Ranks, Role, retrieval_of
from simulation.tails.interpreter import Interpreter, Turn
from simulation.tails.loop import TimedLoop
from simulation.tails.machine import Machine, weight_of
from simulation.tails.topology import Topology
from winnow.cli.units.serving import fit_drift
from winnow.sizing.serving import Drift

pytestmark = pytest.mark.timeout(900)


class Ends:
    """Runs work on a machine, and records when each piece ended."""

    def __init__(self, cores: int, together: float = 1.0) -> None:
        self.loop = TimedLoop(random.Random(1))  # type: ignore[abstract]
        self.machine = Machine(self.loop, cores, together)
        self.times: dict[str, float] = {}

    def note(self, name: str) -> Callable[[], None]:
        return lambda: self.times.update({name: self.loop.time()})

    def wait(self, seconds: float = 100.0) -> dict[str, object]:
        """Lets time pass; returns when each piece ended."""

        async def main() -> None:
            done = self.loop.create_future()
            self.loop.call_later(seconds, done.set_result, None)
            await done

        self.loop.run(main())
        return {name: pytest.approx(at) for name, at in self.times.items()}


def test_work_shares_the_cores_of_its_machine() -> None:
    ends = Ends(cores=2)
    for number in range(3):
        ends.machine.run(2.0, 1.0, ends.note(f"{number}"))
    ends.machine.run(4.0, 1.0, ends.note("long"))
    assert ends.wait() == {"0": 4.0, "1": 4.0, "2": 4.0, "long": 6.0}
    assert ends.machine.busy_seconds == pytest.approx(10.0)


def test_nice_work_gets_the_rest() -> None:
    ends = Ends(cores=1)
    ends.machine.run(3.0, weight_of(0), ends.note("usual"))
    ends.machine.run(3.0, weight_of(5), ends.note("nice"))
    usual = 3.0 * (1024 + 335) / 1024
    assert ends.wait() == {"usual": usual, "nice": 6.0}


def test_cores_are_slower_together() -> None:
    ends = Ends(cores=2, together=0.5)
    ends.machine.run(1.0, 1.0, ends.note("one"))
    ends.machine.run(2.0, 1.0, ends.note("other"))
    assert ends.wait() == {"one": 2.0, "other": 3.0}


def test_python_runs_in_one_thread_of_a_process_and_native_work_beside_it() -> None:
    ends = Ends(cores=4)
    process = Process("node")
    own = Interpreter(ends.loop, process, ends.machine)
    own.work_on_loop(1.0, ends.note("loop"))
    own.work_in_thread(Turn(1.0), 1.0, ends.note("python"))
    own.work_in_thread(Turn(native=1.0), 1.0, ends.note("native"))
    assert ends.wait() == {"loop": 1.0, "python": 2.0, "native": 1.0}


def test_callbacks_of_a_process_wait_while_its_event_loop_works() -> None:
    ends = Ends(cores=1)
    process = Process("node")
    own = Interpreter(ends.loop, process, ends.machine)
    own.work_on_loop(1.0, ends.note("first"))
    own.work_on_loop(1.0, ends.note("second"))
    ends.loop.run_in(process, ends.note("callback"))
    assert ends.wait() == {"first": 1.0, "callback": 1.0, "second": 2.0}


def test_drawn_times_have_the_measured_mean() -> None:
    serving = serving_units()
    rng = random.Random(1)
    ranks = Ranks(rng, Drift(), cores=2)
    costs = Costs(Role.NODE, serving, retrieval_of(units(), serving, 300), rng, ranks=ranks)
    reads = [costs.read() for _ in range(2_000)]
    assert sum(reads) / len(reads) == pytest.approx(serving.read.ms / 1e3, rel=0.05)
    assert max(reads) <= 2 * serving.read.ms / 1e3


@pytest.mark.parametrize(("correlation", "seconds"), [(0.8, 2.0), (0.5, 0.05)])
def test_ranks_drift_as_times_of_equal_work_did(correlation: float, seconds: float) -> None:
    """The drift that is fitted to drawn times is the one they were drawn with."""
    drawn = Ranks(random.Random(1), Drift(correlation=correlation, seconds=seconds), cores=1)
    ranks = [drawn.draw(0.02) for _ in range(40_000)]
    assert min(ranks) >= 0
    assert max(ranks) < 1
    assert [sum(each < share for each in ranks) / len(ranks) for share in (0.1, 0.5, 0.9)] == (
        pytest.approx([0.1, 0.5, 0.9], abs=0.05)
    )
    fitted = fit_drift([0.019 + 0.002 * each for each in ranks], 0.02)
    assert fitted.correlation == pytest.approx(correlation, abs=0.1)
    assert fitted.seconds == pytest.approx(seconds, rel=0.3)


def test_work_takes_its_mean_time_however_the_machine_drifts() -> None:
    """In simulated time a fast machine does more work, which must not make it faster still."""
    serving = serving_units()
    for number in range(20):
        rng = random.Random(number)
        ranks = Ranks(rng, Drift(correlation=0.9, seconds=0.5), cores=1)
        retrieval = retrieval_of(units(), serving, 300)
        costs = Costs(Role.NODE, serving, retrieval, rng, ranks=ranks)
        reads = [costs.read() for _ in range(5_000)]
        assert sum(reads) / len(reads) == pytest.approx(serving.read.ms / 1e3, rel=0.15)


def test_times_without_a_drift_have_none() -> None:
    rng = random.Random(1)
    drawn = Ranks(rng, Drift(), cores=1)
    ranks = [drawn.draw(0.02) for _ in range(5_000)]
    assert fit_drift(ranks, 0.02).correlation == pytest.approx(0.0, abs=0.15)
    assert fit_drift([0.02], 0.02) == Drift()
    assert fit_drift([0.02] * 1_000, 0.02) == Drift()


def test_retrieval_takes_longer_from_larger_shards() -> None:
    sizes = (100, 1_000, 10_000, 1_000_000)
    found = [retrieval_of(units(), serving_units(), size) for size in sizes]
    total = [each.python_ms + each.native_ms for each in found]
    assert total == sorted(total)
    assert total[0] == serving_units().retrieve[0].cost.ms
    assert total[-1] > total[-2]


def test_replicas_have_the_same_middle_front() -> None:
    topology = Topology(10, shards_per_node=2, replicas=2, middle_fronts=2)
    groups = topology.groups()
    assert sorted(name for own in groups.values() for name in own) == sorted(topology.nodes())
    for own in groups.values():
        shards = [topology.nodes()[name] for name in own]
        assert all(shards.count(each) == topology.replicas for each in shards)


def test_latencies_follow_from_the_durations(tmp_path: Path) -> None:
    made = units().model_copy(update={"serving": serving_units()})
    path = tmp_path / "units.json"
    path.write_text(made.model_dump_json(), encoding="utf-8")
    flags = ["tails", "--units", str(path), "--json", "--answers", "20", "--replicas", "2"]
    flags += ["--shards-per-node", "2", "--passages-to-read", "2"]
    one, two = (
        simulate(*flags, "--shards", "4", *levels, PYTHONHASHSEED=seed)
        for levels, seed in (([], "1"), (["--middle-fronts", "2"], "1"))
    )
    assert not one.returncode, one.stderr
    assert not two.returncode, two.stderr
    again = simulate(*flags, "--shards", "4", PYTHONHASHSEED="2")
    assert again.stdout == one.stdout
    (flat,), (deep,) = json.loads(one.stdout), json.loads(two.stdout)
    serving = serving_units()
    least = serving.question_ms + serving.encode.ms + serving.read.ms
    assert least < flat["p50_ms"]["value"] < flat["p99_ms"]["value"] < 200
    assert flat["p50_ms"]["value"] < deep["p50_ms"]["value"]
    assert (flat["failed"], flat["partial"], flat["answers"]) == (0, 0, 20)
    assert (deep["failed"], deep["partial"], deep["answers"]) == (0, 0, 20)


@pytest.mark.parametrize("flag", ["--answers", "--shards", "--replicas", "--passages-to-read"])
def test_numbers_must_be_positive(flag: str) -> None:
    refused = simulate("tails", "--units", "none.json", flag, "0")
    assert refused.returncode == 2
    assert f"argument {flag}: must be a positive number, not 0" in refused.stderr
