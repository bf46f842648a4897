"""How closely nodes are looked at, by whether questions come."""

import asyncio

from manual_clock import ManualClock
from tenacious import turn

from winnow.stateless.cluster.polling import QUIET_SECONDS, PollingSchedule

HOUR = 3_600.0


def test_it_is_awake_for_a_while_after_each_question() -> None:
    clock = ManualClock()
    attention = PollingSchedule(clock)
    assert not attention.is_active
    for _ in range(3):
        attention.record_request()
        clock.advance(QUIET_SECONDS * 0.9)
        assert attention.is_active
    clock.advance(QUIET_SECONDS * 0.2)
    assert not attention.is_active


async def test_the_first_question_after_a_quiet_time_wakes_every_poll() -> None:
    clock = ManualClock()
    attention = PollingSchedule(clock)
    for _ in range(2):
        resting = [asyncio.create_task(attention.wait(HOUR)) for _ in range(3)]
        await turn()
        attention.record_request()
        await asyncio.wait_for(asyncio.gather(*resting), 60)
        clock.advance(QUIET_SECONDS)


async def test_later_questions_wake_no_poll() -> None:
    """Or a front under load would look at its nodes at every question."""
    attention = PollingSchedule(ManualClock())
    attention.record_request()
    resting = asyncio.create_task(attention.wait(HOUR))
    await turn()
    attention.record_request()
    await turn()
    assert not resting.done()
    resting.cancel()
    await asyncio.wait([resting])


async def test_rest_ends_by_itself() -> None:
    await asyncio.wait_for(PollingSchedule(ManualClock()).wait(0.001), 60)
