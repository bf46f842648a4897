"""Work that several ask for at once, done by a flight of attempts."""

import asyncio
import traceback

import pytest
from manual_clock import ManualClock
from tenacious import happens, turn

from winnow.deadline import Deadline
from winnow.errors import OverloadedError, UnavailableError
from winnow.policy.attempts import Lack, SingleFlightCaller
from winnow.single_flight import SharedResult, SingleFlight


class Work:
    """Makes a number when it is told to."""

    def __init__(self) -> None:
        self.begun = self.given_up = self.ended = 0
        self.go_on = asyncio.Event()
        self.errors: list[Exception] = []

    async def make(self) -> int:
        self.begun += 1
        number = self.begun
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        self.ended += 1
        if self.errors:
            raise self.errors.pop(0)
        return number


class Desk:
    """Everybody who asks for "a" waits for the work in hand, or begins it."""

    def __init__(self) -> None:
        self.work, self.clock = Work(), ManualClock()
        self.flights = SingleFlight[str, int](lack_of_error=_lack)

    def ask(self, client: str = "", left: float = 2.0) -> "asyncio.Task[SharedResult[int]]":
        asker = SingleFlightCaller(deadline=Deadline.after(left, self.clock), client=client)
        return asyncio.create_task(self.flights.ask("a", self.work.make, asker))


def _lack(error: BaseException) -> Lack:
    return Lack.SHARE if isinstance(error, OverloadedError) else Lack.NOTHING


async def test_those_who_ask_at_once_get_the_result_of_one_piece_of_work() -> None:
    desk = Desk()
    tasks = [desk.ask() for _ in range(3)]
    await turn()
    assert ("a" in desk.flights, desk.flights.waiting) == (True, 3)
    desk.work.go_on.set()
    landed = await asyncio.gather(*tasks)
    assert [(each.result, each.own) for each in landed] == [(1, True), (1, False), (1, False)]
    assert ("a" in desk.flights, desk.flights.waiting) == (False, 0)


async def test_a_caller_after_the_end_begins_another_flight() -> None:
    desk = Desk()
    desk.work.go_on.set()
    assert [(await desk.ask()).result, (await desk.ask()).result] == [1, 2]


async def test_an_asker_between_the_end_and_the_news_of_it_begins_again() -> None:
    """An answer is never older than its question."""
    desk = Desk()
    first = desk.ask()
    await turn()
    desk.work.go_on.set()
    await happens(lambda: desk.work.ended == 1)
    assert (await desk.ask()).result == 2
    assert (await first).result == 1


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_one_that_is_cancelled_takes_it_from_nobody(cancelled: int) -> None:
    desk = Desk()
    tasks = [desk.ask(), desk.ask()]
    await turn()
    tasks[cancelled].cancel()
    await turn()
    desk.work.go_on.set()
    assert (await tasks[1 - cancelled]).result == 1
    assert tasks[cancelled].cancelled()
    assert desk.work.given_up == 0


async def test_what_nobody_waits_for_any_more_is_given_up_at_once() -> None:
    desk = Desk()
    tasks = [desk.ask(), desk.ask(left=0.5)]
    await happens(lambda: desk.work.begun == 2)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert "a" not in desk.flights, "who comes now must not join what is being given up"
    await happens(lambda: desk.work.given_up == 2)


async def test_work_that_is_given_up_does_not_take_the_place_of_what_began_after_it() -> None:
    desk = Desk()
    leaves = desk.ask()
    await turn()
    leaves.cancel()
    await asyncio.wait([leaves])
    comes = desk.ask()
    await happens(lambda: desk.work.given_up == 1 and desk.work.begun == 2)
    assert "a" in desk.flights
    desk.work.go_on.set()
    assert (await comes).result == 2


async def test_everybody_is_told_of_a_failure_that_all_would_have_and_nobody_after_that() -> None:
    desk = Desk()
    desk.work.errors = [UnavailableError("gone")]
    tasks = [desk.ask("x"), desk.ask("y")]
    await turn()
    desk.work.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in ended] == ["gone", "gone"]
    assert desk.work.begun == 1
    assert "a" not in desk.flights


async def test_the_traceback_of_a_failure_does_not_grow_with_those_who_are_told_of_it() -> None:
    desk, lengths = Desk(), list[int]()
    desk.work.errors = [UnavailableError("gone")]

    async def ask() -> None:
        try:
            await desk.flights.ask("a", desk.work.make)
        except UnavailableError as error:
            lengths.append(len(traceback.extract_tb(error.__traceback__)))

    tasks = [asyncio.create_task(ask()) for _ in range(5)]
    await turn()
    desk.work.go_on.set()
    await asyncio.wait(tasks)
    assert len(lengths) == 5
    assert len(set(lengths)) == 1


async def test_those_whose_leader_is_refused_share_the_next_attempt() -> None:
    desk = Desk()
    desk.work.errors = [OverloadedError("full")]
    tasks = [desk.ask(client) for client in "xyzw"]
    await turn()
    desk.work.go_on.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(ended[0], OverloadedError)
    assert [each.result for each in ended[1:] if isinstance(each, SharedResult)] == [2, 2, 2]
    assert desk.work.begun == 2


async def test_an_asker_with_less_time_does_not_wait_and_others_wait_for_its_attempt() -> None:
    desk = Desk()
    tasks = [desk.ask(left=9.0), desk.ask(left=1.0), desk.ask(left=1.0)]
    await happens(lambda: desk.work.begun == 2)
    desk.work.go_on.set()
    await asyncio.gather(*tasks)
    assert desk.work.begun == 2


async def test_a_failure_that_nobody_waited_for_is_no_warning() -> None:
    """asyncio would write of an exception that was never retrieved."""
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    desk = Desk()
    desk.work.errors = [UnavailableError("gone")]
    task = desk.ask()
    await turn()
    desk.work.go_on.set()
    task.cancel()
    await asyncio.wait([task])
    del task
    await turn()
    assert told == []


async def test_all_work_in_hand_can_be_given_up() -> None:
    desk = Desk()
    tasks = [desk.ask(), desk.ask()]
    await turn()
    desk.flights.cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, True]
    assert desk.work.given_up == 1
