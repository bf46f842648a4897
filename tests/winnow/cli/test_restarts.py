"""Processes that ended are started again, but not for ever."""

from manual_clock import ManualClock

from winnow.cli.local.restarts import MOST, WINDOW, Restarts


def test_a_process_is_started_again_a_few_times_in_a_while() -> None:
    clock = ManualClock()
    restarts = Restarts(clock)
    assert [restarts.allow("node 0") for _ in range(MOST + 1)] == [True] * MOST + [False]
    assert restarts.allow("node 1")
    clock.advance(WINDOW)
    assert restarts.allow("node 0")


def test_what_was_refused_is_not_counted() -> None:
    clock = ManualClock()
    restarts = Restarts(clock)
    for _ in range(MOST):
        restarts.allow("front")
        clock.advance(WINDOW / 4)
    assert not restarts.allow("front")
    clock.advance(WINDOW / 4)
    assert restarts.allow("front")
