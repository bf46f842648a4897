"""Deadlines on a manual clock."""

import pytest
from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError
from winnow.rpc.deadline import deadline_of, was_reached


def test_time_left_falls_as_the_clock_runs() -> None:
    clock = ManualClock()
    deadline = Deadline.after(2.0, clock)
    clock.advance(1.5)
    assert deadline.left() == pytest.approx(0.5)
    assert not deadline.expired()
    clock.advance(0.5)
    assert deadline.expired()


def test_a_reserve_makes_it_earlier() -> None:
    clock = ManualClock()
    assert Deadline.after(2.0, clock).earlier(0.5).left() == pytest.approx(1.5)


def test_work_that_is_too_late_is_named() -> None:
    clock = ManualClock()
    deadline = Deadline.after(1.0, clock)
    deadline.check("reading")
    clock.advance(1.0)
    with pytest.raises(DeadlineExceededError, match="before reading"):
        deadline.check("reading")


@pytest.mark.parametrize(
    ("left", "given", "expected"),
    [
        (0.0, 2.0, True),
        (0.003, 0.05, True),
        (0.08, 10.1, True),  # gRPC made 10.1 s of 10.02 s on the wire
        (0.08, 2.0, False),
        (59.0, 60.0, False),
        (None, None, False),
    ],
)
def test_a_call_cancelled_at_the_end_of_its_time_ran_out_of_it(
    left: float | None, given: float | None, expected: bool
) -> None:
    assert was_reached(left, given) is expected


class Caller:
    """A context of a call with so much time."""

    def __init__(self, left: float | None) -> None:
        self._left = left

    def time_remaining(self) -> float | None:
        return self._left


@pytest.mark.parametrize(
    ("left", "expected"),
    [(1.5, 1.5), (None, 2.0), (1e12, 3_600.0)],  # 1e12 s: gRPC lets a caller ask for 11 415 years
)
def test_a_call_takes_an_hour_at_most(left: float | None, expected: float) -> None:
    assert deadline_of(Caller(left), 2.0).left() == pytest.approx(expected, abs=1.0)
