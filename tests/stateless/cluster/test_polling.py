"""How closely nodes are looked at, by whether questions come."""

import asyncio

from manual_clock import ManualClock
from tenacious import turn

from winnow.stateless.cluster.polling import QUIET, PollingSchedule

HOUR = 3_600.0


def test_it_is_awake_for_a_while_after_each_question() -> None:
    clock = ManualClock()
    attention = PollingSchedule(clock)
    assert not attention.awake
    for _ in range(3):
        attention.asked()
        clock.advance(QUIET * 0.9)
        assert attention.awake
    clock.advance(QUIET * 0.2)
    assert not attention.awake


async def test_the_first_question_after_a_quiet_time_wakes_every_poll() -> None:
    clock = ManualClock()
    attention = PollingSchedule(clock)
    for _ in range(2):
        resting = [asyncio.create_task(attention.rest(HOUR)) for _ in range(3)]
        await turn()
        attention.asked()
        await asyncio.wait_for(asyncio.gather(*resting), 60)
        clock.advance(QUIET)


async def test_later_questions_wake_no_poll() -> None:
    """Or a front under load would look at its nodes at every question."""
    attention = PollingSchedule(ManualClock())
    attention.asked()
    resting = asyncio.create_task(attention.rest(HOUR))
    await turn()
    attention.asked()
    await turn()
    assert not resting.done()
    resting.cancel()
    await asyncio.wait([resting])


async def test_rest_ends_by_itself() -> None:
    await asyncio.wait_for(PollingSchedule(ManualClock()).rest(0.001), 60)
