"""Plans follow from their seeds, and a wish changes only what it names."""

from dataclasses import replace

import pytest

from simulation.drawing import Wish, make_plan
from simulation.plan import Shape

_MINUTE = 60.0


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_always_gives_the_same_plan(seed: int) -> None:
    assert make_plan(seed) == make_plan(seed)


@pytest.mark.parametrize("seed", range(20))
def test_minutes_pass_between_the_parts_of_a_long_plan(seed: int) -> None:
    shape = Shape()
    plan = make_plan(seed, Wish(shape=shape, long=True))
    times = [0.0, *(step.at for step in plan.steps)]
    assert times == sorted(times)
    assert times[-1] > _MINUTE
    assert plan.shape == shape


@pytest.mark.parametrize("seed", range(20))
def test_a_long_plan_has_the_steps_of_a_short_one(seed: int) -> None:
    long, short = (make_plan(seed, Wish(long=long)) for long in (True, False))
    assert [replace(step, at=0.0, seconds=0.0) for step in long.steps] == [
        replace(step, at=0.0, seconds=0.0) for step in short.steps
    ]
    for step, other in zip(long.steps, short.steps, strict=True):
        assert step.at >= other.at
