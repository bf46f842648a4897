"""Cores that work shares, and what waits for them."""

from collections.abc import Generator
from functools import partial
from typing import Any

import pytest
import simpy

from bench.simulation.machine import GENTLE_WEIGHT, Machine
from bench.simulation.queues import Threads


def ends(machine: Machine, env: simpy.Environment, *work: tuple[float, bool]) -> list[float]:
    """When each piece of work is done, if all begin at once."""
    found = [0.0] * len(work)

    def ended(place: int, _: simpy.Event) -> None:
        found[place] = env.now

    for place, (seconds, gentle) in enumerate(work):
        done = machine.work(seconds, gentle)
        done.callbacks.append(partial(ended, place))
    env.run()
    return found


@pytest.mark.parametrize(
    ("cores", "work", "expected"),
    [
        (2, [1.0], [1.0]),
        (2, [1.0, 1.0], [1.0, 1.0]),
        (1, [1.0, 1.0], [2.0, 2.0]),
        (1, [1.0, 2.0], [2.0, 3.0]),
        (2, [1.0, 1.0, 1.0], [1.5, 1.5, 1.5]),
        (2, [1.0, 1.0, 4.0], [1.5, 1.5, 4.5]),
    ],
)
def test_work_shares_the_cores(cores: int, work: list[float], expected: list[float]) -> None:
    env = simpy.Environment()
    found = ends(Machine(env, cores), env, *((seconds, False) for seconds in work))
    assert found == pytest.approx(expected)


def test_gentle_work_gets_a_third_of_the_share_of_other_work() -> None:
    env = simpy.Environment()
    prompt, gentle = ends(Machine(env, 1), env, (1.0, False), (1.0, True))
    assert prompt == pytest.approx(1 + GENTLE_WEIGHT)
    assert gentle == pytest.approx(2.0)


def test_gentle_work_gets_what_others_leave() -> None:
    env = simpy.Environment()
    found = ends(Machine(env, 2), env, (1.0, False), (1.0, True), (1.0, True))
    # one core for the prompt one, half of the other for each of the rest until it is done
    assert found == pytest.approx([1.0, 1.5, 1.5])


def test_busy_cores_are_slower() -> None:
    env = simpy.Environment()
    found = ends(Machine(env, 2, together=0.5), env, (1.0, False), (1.0, False))
    assert found == pytest.approx([2.0, 2.0])


def test_work_that_is_dropped_leaves_its_share_to_the_others() -> None:
    env = simpy.Environment()
    machine = Machine(env, 1)
    first, second = machine.work(1.0), machine.work(1.0)
    dropped: list[float] = []

    def drop() -> Generator[simpy.Event, Any, None]:
        yield env.timeout(1.0)
        machine.drop(first)
        yield second
        dropped.append(env.now)

    env.run(env.process(drop()))
    assert dropped == pytest.approx([1.5])
    assert not first.triggered


def test_threads_take_one_thing_after_the_other() -> None:
    env = simpy.Environment()
    pool = Threads(env, Machine(env, 4), 2)
    tasks = [pool.do(1.0) for _ in range(3)]
    ended: list[float] = []
    for task in tasks:
        task.callbacks.append(lambda _: ended.append(env.now))
    env.run()
    assert ended == pytest.approx([1.0, 1.0, 2.0])


def test_a_task_that_is_given_up_frees_its_thread() -> None:
    env = simpy.Environment()
    pool = Threads(env, Machine(env, 4), 1)
    running, waiting, last = pool.do(5.0), pool.do(5.0), pool.do(1.0)
    running.cancel()
    waiting.cancel()
    env.run(last)
    assert env.now == pytest.approx(1.0)
