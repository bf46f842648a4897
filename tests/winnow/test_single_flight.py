"""Work that several ask for at once."""

import asyncio

import pytest
from manual_clock import ManualClock
from tenacious import happens, turn

from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.single_flight import Flight, SingleFlight


class Work:
    """Makes a number when it is told to."""

    def __init__(self) -> None:
        self.begun = self.given_up = 0
        self.go_on = asyncio.Event()
        self.error: Exception | None = None

    async def make(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.error is not None:
            raise self.error
        return number


class Desk:
    """Everybody who asks for "a" waits for the work in hand, or begins it."""

    def __init__(self) -> None:
        self.work, self.flights = Work(), SingleFlight[str, int]()

    def ask(self) -> "asyncio.Task[int]":
        flight = self.flights.get("a") or self.begin()
        return asyncio.create_task(flight.result())

    def begin(self, deadline: Deadline | None = None) -> Flight[int]:
        return self.flights.begin("a", self.work.make(), deadline)


async def test_those_who_ask_at_once_get_the_result_of_one_piece_of_work() -> None:
    desk = Desk()
    tasks = [desk.ask() for _ in range(3)]
    await turn()
    desk.work.go_on.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]


async def test_whoever_comes_after_the_end_begins_anew() -> None:
    desk = Desk()
    desk.work.go_on.set()
    assert [await desk.ask(), await desk.ask()] == [1, 2]


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_one_that_is_cancelled_takes_it_from_nobody(cancelled: int) -> None:
    desk = Desk()
    tasks = [desk.ask(), desk.ask()]
    await turn()
    tasks[cancelled].cancel()
    await turn()
    desk.work.go_on.set()
    assert await tasks[1 - cancelled] == 1
    assert tasks[cancelled].cancelled()
    assert desk.work.given_up == 0


async def test_what_nobody_waits_for_any_more_is_given_up_at_once() -> None:
    desk = Desk()
    tasks = [desk.ask(), desk.ask()]
    await turn()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert desk.flights.get("a") is None, "who comes now must not join what is being given up"
    await happens(lambda: desk.work.given_up == 1)


async def test_work_that_is_given_up_does_not_take_the_place_of_what_began_after_it() -> None:
    desk = Desk()
    leaves = desk.ask()
    await turn()
    leaves.cancel()
    await asyncio.wait([leaves])
    comes = desk.ask()
    await happens(lambda: desk.work.given_up == 1)
    assert desk.flights.get("a") is not None
    desk.work.go_on.set()
    assert await comes == 2


async def test_everybody_is_told_of_a_failure_and_nobody_after_that() -> None:
    desk = Desk()
    desk.work.error = UnavailableError("gone")
    tasks = [desk.ask(), desk.ask()]
    await turn()
    desk.work.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert ended == [desk.work.error] * 2
    assert desk.flights.get("a") is None


async def test_a_failure_that_nobody_waited_for_is_no_warning() -> None:
    """asyncio would write of an exception that was never retrieved."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    desk = Desk()
    desk.work.error = UnavailableError("gone")
    desk.work.go_on.set()
    flight = desk.begin()
    await happens(lambda: desk.flights.get("a") is None)
    del flight
    await turn()
    assert told == []


async def test_all_work_in_hand_can_be_given_up() -> None:
    desk = Desk()
    task = desk.ask()
    await turn()
    desk.flights.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.work.given_up == 1


@pytest.mark.parametrize(("left", "in_time"), [(1.9, False), (1.995, True), (2.0, True)])
async def test_work_is_in_time_for_deadlines_not_before_its_own(left: float, in_time: bool) -> None:
    """Deadlines that were set at once differ a little."""
    clock, desk = ManualClock(), Desk()
    flight = desk.begin(Deadline.after(2.0, clock))
    assert flight.in_time_for(Deadline.after(left, clock)) is in_time
    flight.cancel()


async def test_the_age_of_work_is_told_by_the_clock_of_its_deadline() -> None:
    clock, desk = ManualClock(), Desk()
    flight = desk.begin(Deadline.after(2.0, clock))
    clock.advance(0.5)
    assert flight.age() == 0.5
    flight.cancel()
