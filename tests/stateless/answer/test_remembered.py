"""Answers that are given again, and questions that come several times at once."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from fakes import reading
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from tenacious import happens, turn
from traced import Traced

from winnow.deadline import Deadline
from winnow.domain.answered import Answer, Answered, ShardTimings, Timings
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.question import Question, ReadScope, Retriever, WaitPolicy
from winnow.domain.write import Position
from winnow.errors import DeadlineExceededError, OverloadedError, WinnowError
from winnow.policy.attempts import SingleFlightCaller
from winnow.stateless.answer.answer_cache import AnswerCache, AnswerKey
from winnow.stateless.cluster.index_version import IndexVersion

QUESTION = Question(
    text="Who?",
    passages_to_read=10,
    answers=3,
    read_scope=ReadScope.GLOBAL,
    retriever=Retriever.HYBRID,
    max_answer_tokens=10,
)
WHO, WHAT = AnswerKey.of((1,), QUESTION), AnswerKey.of((2,), QUESTION)
WHOLE = Coverage.of([ShardCoverage(shard=0, passages=10, status=ShardStatus.SEARCHED, sequence=0)])
PART = Coverage.of([*WHOLE.shards, ShardCoverage(shard=1, passages=10, status=ShardStatus.TIMEOUT)])
ROOM = 1 << 20


def answer(text: str, coverage: Coverage = WHOLE, granted: int = 10) -> Answered:
    timings = Timings(read=0.5, total=0.6, shards={0: ShardTimings(read=0.5)})
    answers = (Answer(reading(text), 0),)
    return Answered(
        answers=answers,
        has_answer=True,
        coverage=coverage,
        timings=timings,
        passages_asked=10,
        passages_granted=granted,
        passages_read=granted,
        passages_needed=4,
        read_scope=ReadScope.GLOBAL,
        question_truncated=False,
    )


class Counted:
    def __init__(self) -> None:
        self.looks: list[str] = []
        self.bytes = 0

    def count_lookup(self, result: str) -> None:
        self.looks.append(result)

    def resize(self, added_bytes: int, evicted: int) -> None:
        self.bytes += added_bytes


class Shards:
    """Finds answers when it is told to; each is given in turn, the last one again and again."""

    def __init__(self, *answers: Answered | WinnowError) -> None:
        self.answers = list(answers) or [answer("a")]
        self.go_on = asyncio.Event()
        self.asked = self.given_up = 0

    async def find(self) -> Answered:
        self.asked += 1
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, WinnowError):
            raise found
        return found


class House:
    """Remembered answers over shards that reply at once, unless told otherwise."""

    def __init__(self, *answers: Answered | WinnowError, budget: int = ROOM) -> None:
        self.index_version = IndexVersion(("rows",), is_confirmed=True)
        self.clock, self.counted, self.shards = ManualClock(), Counted(), Shards(*answers)
        self.shards.go_on.set()
        self.in_hand, self.room = Counter[str](), True
        self.remembered = AnswerCache(budget, lambda: self.index_version, self.counted)

    def begin(
        self, asked: AnswerKey = WHO, left: float = 2.0, client: str = ""
    ) -> "asyncio.Task[Answered]":
        return asyncio.create_task(self.ask(asked, left, client))

    async def ask(self, asked: AnswerKey = WHO, left: float = 2.0, client: str = "") -> Answered:
        deadline = Deadline.after(left, self.clock)
        asker = SingleFlightCaller(
            deadline=deadline,
            client=client,
            work=10,
            work_in_flight=lambda: self.in_hand[client],
            has_room_for_attempt=lambda: self.room,
        )
        return await self.remembered.get_or_compute(asked, asker, self.shards.find)

    async def waits(self, *tasks: "asyncio.Task[Answered]") -> None:
        """Until the shards are asked, and all else that can go on has."""
        await happens(lambda: self.shards.asked > 0)
        for _ in tasks:
            await turn()


async def test_a_question_that_was_asked_before_is_answered_without_the_shards() -> None:
    house = House()
    first, again = await house.ask(), await house.ask()
    assert house.shards.asked == 1
    assert again.answers == first.answers
    assert (first.cached, first.passages_read, first.timings.read) == (False, 10, 0.5)
    assert (again.cached, again.passages_read, again.timings) == (True, 0, Timings())
    assert first.passages_needed == again.passages_needed == 4, "the answer rests on them still"
    assert (again.passages_asked, again.passages_granted) == (10, 10)
    assert house.counted.looks == ["miss", "hit"]


async def test_nobody_can_change_the_timings_of_others() -> None:
    house = House()
    await house.ask()
    (await house.ask()).timings.total = 9.0
    assert (await house.ask()).timings.total == 0


@pytest.mark.parametrize(
    "other",
    [
        WHAT,
        AnswerKey.of((1,), replace(QUESTION, answers=4)),
        AnswerKey.of((1,), replace(QUESTION, max_loss=0.1)),
        AnswerKey.of((1,), replace(QUESTION, patience=WaitPolicy(0.5))),
    ],
)
async def test_other_tokens_and_other_options_are_other_questions(other: AnswerKey) -> None:
    house = House()
    await house.ask()
    await house.ask(other)
    assert house.shards.asked == 2


async def test_another_spelling_of_the_same_tokens_is_the_same_question() -> None:
    house = House()
    await house.ask(AnswerKey.of((1,), QUESTION))
    again = await house.ask(AnswerKey.of((1,), replace(QUESTION, text="WHO?")))
    assert again.cached


@pytest.mark.parametrize(
    "changed", [IndexVersion(("other",), is_confirmed=True), IndexVersion(None)]
)
async def test_an_answer_of_another_version_is_never_given(changed: IndexVersion) -> None:
    house = House(answer("old"), answer("new"))
    first = house.index_version
    await house.ask()
    house.index_version = changed
    assert (await house.ask()).answers == answer("new").answers
    house.index_version = first
    assert not (await house.ask()).cached, "and what is gone does not come back"


async def test_while_it_is_not_sure_what_is_served_shards_are_asked() -> None:
    house = House()
    await house.ask()
    house.index_version = replace(house.index_version, is_confirmed=False)
    assert not (await house.ask()).cached
    house.index_version = replace(house.index_version, is_confirmed=True)
    assert (await house.ask()).cached


async def test_an_answer_during_which_the_index_changed_is_not_kept() -> None:
    house = House()
    house.shards.go_on.clear()
    task = house.begin()
    await house.waits(task)
    house.index_version = IndexVersion(("new rows",), is_confirmed=True)
    house.shards.go_on.set()
    await task
    assert not (await house.ask()).cached
    assert house.shards.asked == 2


@pytest.mark.parametrize(
    "found",
    [
        answer("a", PART),
        answer("a", granted=3),
        replace(answer("a"), lost_late_interaction=True),
    ],
)
async def test_an_answer_that_might_be_better_is_not_kept(found: Answered) -> None:
    house = House(found)
    await house.ask()
    assert not (await house.ask()).cached


async def test_an_answer_for_which_enough_was_read_is_kept_however_little_was_let_in() -> None:
    """Reading stopped before the passages that were let in were used up; so it would have if all
    had been.
    """
    stopped = replace(answer("a", granted=5), passages_needed=2, max_loss=0.3)
    used_up = replace(stopped, passages_needed=5)
    for found, kept in ((stopped, True), (used_up, False), (replace(stopped, max_loss=0), False)):
        house = House(found)
        await house.ask()
        assert (await house.ask()).cached == kept


async def test_a_failure_is_not_kept() -> None:
    house = House(WinnowError("gone"), answer("a"))
    with pytest.raises(WinnowError, match="gone"):
        await house.ask()
    assert not (await house.ask()).cached


async def test_a_hundred_who_ask_at_once_are_read_for_once() -> None:
    house = House()
    house.shards.go_on.clear()
    tasks = [house.begin() for _ in range(100)]
    await house.waits(*tasks)
    house.shards.go_on.set()
    replies = await asyncio.gather(*tasks)
    assert house.shards.asked == 1
    assert [reply.cached for reply in replies] == [False] + [True] * 99
    assert {reply.passages_read for reply in replies} == {10, 0}
    assert house.counted.looks.count("hit") == 99


@pytest.mark.parametrize("cancelled", [0, 1])
async def test_one_that_gives_up_takes_the_answer_from_nobody(cancelled: int) -> None:
    house = House()
    house.shards.go_on.clear()
    tasks = [house.begin(), house.begin()]
    await house.waits(*tasks)
    tasks[cancelled].cancel()
    await turn()
    house.shards.go_on.set()
    assert (await tasks[1 - cancelled]).answers
    assert house.shards.asked == 1


async def test_what_nobody_waits_for_any_more_is_given_up() -> None:
    house = House()
    house.shards.go_on.clear()
    tasks = [house.begin(), house.begin()]
    await house.waits(*tasks)
    for task in tasks:
        task.cancel()
    await happens(lambda: house.shards.given_up == 1)
    house.shards.go_on.set()
    assert (await house.ask()).answers


async def test_whoever_has_more_time_does_not_fail_with_the_first_asker() -> None:
    house = House(DeadlineExceededError("too late"), answer("a"))
    house.shards.go_on.clear()
    hurried, patient = house.begin(left=0.1), house.begin(left=2.0)
    await house.waits(hurried, patient)
    house.clock.advance(0.1)
    house.shards.go_on.set()
    with pytest.raises(DeadlineExceededError):
        await hurried
    assert (await patient).answers


@pytest.mark.parametrize("poor", [answer("a", PART), answer("a", granted=3)])
async def test_whoever_has_more_time_does_not_get_a_part_from_the_first_asker(
    poor: Answered,
) -> None:
    house = House(poor, answer("whole"))
    house.shards.go_on.clear()
    hurried, patient = house.begin(left=0.1), house.begin(left=2.0)
    await house.waits(hurried, patient)
    house.clock.advance(0.1)
    house.shards.go_on.set()
    assert (await hurried).answers == poor.answers
    assert (await patient).answers == answer("whole").answers


async def test_whoever_has_no_time_for_better_takes_what_the_first_asker_got() -> None:
    house = House(answer("a", PART))
    house.shards.go_on.clear()
    first, second = house.begin(left=2.0), house.begin(left=2.1)
    await house.waits(first, second)
    house.clock.advance(1.9)
    house.shards.go_on.set()
    assert (await second).coverage == PART
    assert house.shards.asked == 1


async def test_whoever_has_less_time_than_the_first_asker_does_not_wait_for_it() -> None:
    house = House()
    house.shards.go_on.clear()
    patient, hurried = house.begin(left=9.0), house.begin(left=0.1)
    await house.waits(patient, hurried)
    await happens(lambda: house.shards.asked == 2)
    house.shards.go_on.set()
    assert (await hurried).answers == (await patient).answers


DOWN = Coverage.of(
    [*WHOLE.shards, ShardCoverage(shard=1, passages=10, status=ShardStatus.UNAVAILABLE)]
)
FULL = Coverage.of(
    [*WHOLE.shards, ShardCoverage(shard=1, passages=10, status=ShardStatus.OVERLOADED)]
)


@pytest.mark.parametrize("poor", [answer("a", DOWN), answer("a", granted=3)])
async def test_where_asking_again_cannot_help_equal_questions_are_read_once(poor: Answered) -> None:
    """A shard is down, or there is too much to do: twelve at once are read for once."""
    house = House(poor)
    house.room = False
    house.shards.go_on.clear()
    tasks = [house.begin(client=f"{n}") for n in range(12)]
    await house.waits(*tasks)
    house.shards.go_on.set()
    replies = await asyncio.gather(*tasks)
    assert house.shards.asked == 1
    assert all(reply.coverage == poor.coverage for reply in replies)
    assert sum(reply.passages_read for reply in replies) == poor.passages_read


async def test_once_there_is_room_again_a_dimmed_answer_is_found_again_once_for_all() -> None:
    house = House(answer("dim", granted=3), answer("whole"))
    house.shards.go_on.clear()
    tasks = [house.begin(client=f"{n}") for n in range(12)]
    await house.waits(*tasks)
    house.shards.go_on.set()
    first, *others = await asyncio.gather(*tasks)
    assert first.answers == answer("dim").answers
    assert {reply.answers for reply in others} == {answer("whole").answers}
    assert house.shards.asked == 2


async def test_an_answer_in_hand_is_given_to_who_is_refused_when_it_asks_again() -> None:
    house = House(answer("a", FULL), OverloadedError("full", 1.0))
    house.shards.go_on.clear()
    tasks = [house.begin(client=f"{n}") for n in range(10)]
    await house.waits(*tasks)
    house.shards.go_on.set()
    replies = await asyncio.gather(*tasks)
    assert {reply.coverage for reply in replies} == {FULL}
    assert house.shards.asked == 2


async def test_the_refusal_of_one_client_is_not_that_of_another() -> None:
    house = House(OverloadedError("full", 1.0), answer("a"))
    house.shards.go_on.clear()
    greedy, same, other = (house.begin(client=client) for client in ("x", "x", "y"))
    await house.waits(greedy, same, other)
    house.shards.go_on.set()
    ended = await asyncio.gather(greedy, other, same, return_exceptions=True)
    assert isinstance(ended[0], OverloadedError)
    assert isinstance(ended[1], Answered)


async def test_who_has_the_better_turn_does_not_wait_in_the_line_of_another_client() -> None:
    """And the first asker gets what was found in the better turn."""
    house = House()
    house.in_hand["busy"] = 200
    slow, quick = Shards(answer("slow")), house.shards
    house.shards = slow
    busy = house.begin(client="busy")
    await happens(lambda: slow.asked == 1)
    house.shards = quick
    assert (await house.ask(client="idle")).answers == answer("a").answers
    assert (await busy).answers == answer("a").answers
    await happens(lambda: slow.given_up == 1)


async def test_as_many_as_come_in_one_better_turn_are_read_for_once_more() -> None:
    house = House()
    house.in_hand["busy"] = 200
    house.shards.go_on.clear()
    busy = house.begin(client="busy")
    await happens(lambda: house.shards.asked == 1)
    tasks = [house.begin(client=f"{n}") for n in range(12)]
    await house.waits(*tasks)
    house.shards.go_on.set()
    await asyncio.gather(busy, *tasks)
    assert house.shards.asked == 2


async def test_what_the_first_asker_found_does_not_do_for_who_named_a_later_write() -> None:
    later = Coverage.of(
        [ShardCoverage(shard=0, passages=10, status=ShardStatus.SEARCHED, sequence=7)]
    )
    house = House(answer("old"), answer("new", later))
    house.index_version = replace(house.index_version, sequences={0: 7})
    house.shards.go_on.clear()
    first = house.begin()
    await happens(lambda: house.shards.asked == 1)
    asker = SingleFlightCaller(deadline=Deadline.after(2.0, house.clock))
    asking = house.remembered.get_or_compute(WHO, asker, house.shards.find, [Position(0, 7)])
    named = asyncio.create_task(asking)
    await turn()
    house.shards.go_on.set()
    assert (await first).answers == answer("old").answers
    assert (await named).answers == answer("new").answers


async def test_a_question_is_not_answered_without_a_write_acknowledged_since_the_first_began() -> (
    None
):
    """A lagging replica was searched for the first one, although another one had the write."""
    later = Coverage.of([replace(WHOLE.shards[0], sequence=7)])
    house = House(answer("old"), answer("new", later))
    house.shards.go_on.clear()
    first = house.begin()
    await happens(lambda: house.shards.asked == 1)
    asker = SingleFlightCaller(deadline=Deadline.after(2.0, house.clock))
    asking = house.remembered.get_or_compute(WHO, asker, house.shards.find, required=lambda: {0: 7})
    second = asyncio.create_task(asking)
    await turn()
    house.shards.go_on.set()
    assert (await first).answers == answer("old").answers
    assert (await second).answers == answer("new").answers


@given(st.lists(st.integers(0, 8), max_size=40), st.integers(0, 9_000))
def test_memory_stays_in_its_budget_and_answers_are_those_of_the_shards(
    questions: list[int], budget: int
) -> None:
    async def ask_all() -> None:
        house = House(budget=budget)
        for number in questions:
            house.shards.answers = [answer(f"{number}")]
            asked = AnswerKey.of((number,), QUESTION)
            assert (await house.ask(asked)).answers == answer(f"{number}").answers
            assert 0 <= house.counted.bytes <= budget

    asyncio.run(ask_all())


async def test_who_waits_for_the_answer_of_another_has_only_that_in_its_trace() -> None:
    house, first, second = House(), Traced(), Traced()
    house.shards.go_on.clear()
    with first.begin():
        asking = house.begin()
    await happens(lambda: house.shards.asked == 1)
    with second.begin():
        joining = house.begin()
    await turn()
    house.shards.go_on.set()
    await asyncio.gather(asking, joining)
    assert [each.name for each in first] == ["call"]
    assert [each.name for each in second] == ["call", "join"]
