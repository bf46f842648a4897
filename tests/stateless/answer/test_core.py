"""The answer core, without any transport."""

import asyncio
from dataclasses import replace

import pytest
from fakes import nothing_found, reading
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry
from tenacious import happens
from virtual_loop import in_virtual_time

from winnow.deadline import Deadline
from winnow.domain.answer_size import AnswerSize
from winnow.domain.answered import Answer, Answered
from winnow.domain.partition import Partition
from winnow.domain.question import AnswerRequest, Question, ReadScope
from winnow.domain.write import Position
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
)
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.stateless.answer.admission import Admission, AdmittedQuestion
from winnow.stateless.answer.answer_cache import AnswerCache
from winnow.stateless.answer.core import AnswerCore
from winnow.stateless.answer.validation import QuestionDefaults
from winnow.stateless.cluster.index_version import IndexVersion
from winnow.stateless.encoding import TokenisedQuestion
from winnow.stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.text.tokenizer import Tokens

IN_FLIGHT = "winnow_front_questions_in_flight"


class Echo:
    """An answerer that says what it was given."""

    partition = Partition(2, range(2))
    fields = frozenset({"year"})

    def __init__(self, registry: CollectorRegistry, load: ReadLoad) -> None:
        self._registry, self._load = registry, load
        self.in_flight: float | None = None
        self.reads = self.asked = 0
        self.answers: tuple[Answer, ...] = ()
        self.lines: dict[str, asyncio.Event] = {}
        """What the readers of some clients wait for."""

    def required_writes(self) -> dict[int, int]:
        return {}

    def count_shards(self, _question: Question) -> int:
        return 2

    def tokenise(self, question: Question) -> TokenisedQuestion:
        """Reads the first word."""
        first, *rest = question.text.split()
        ids = tuple(first.encode())
        tokens = Tokens(ids, tuple((n, n + 1) for n in range(len(ids))))
        return TokenisedQuestion(question.text, tokens, bool(rest), seconds=1e-9)

    async def answer(
        self, admitted: AdmittedQuestion, tokens: TokenisedQuestion, deadline: Deadline
    ) -> Answered:
        self.asked += 1
        if admitted.client in self.lines:
            await self.lines[admitted.client].wait()
        self.in_flight = self._registry.get_sample_value(IN_FLIGHT)
        self.reads = self._load.reads_in_flight
        return replace(nothing_found(admitted), answers=self.answers)


class House:
    """A core and what it is made of."""

    def __init__(self, remember: bool = False) -> None:
        self.registry, self.clock = CollectorRegistry(), ManualClock()
        self.load = ReadLoad(
            LoadSettings(max_reads=100, reserved_share=0.0), self.clock, lambda: None
        )
        admission = Admission(self.load, 64, AdmissionMetrics(self.registry))
        defaults = QuestionDefaults(
            passages_to_read=10, answers=3, read_scope=ReadScope.GLOBAL, max_answer_tokens=10
        )
        remembered = AnswerCache(1 << 20, lambda: IndexVersion(("rows",), is_confirmed=True))
        self.core = AnswerCore(
            defaults,
            admission,
            FrontMetrics(self.registry),
            cache=remembered if remember else None,
        )
        self.echo = Echo(self.registry, self.load)

    def full(self) -> None:
        """Another client has everything from now on."""
        while True:
            try:
                self.load.admit(10, 60.0, "greedy", 1)
            except OverloadedError:
                return

    async def ask(self, request: AnswerRequest, left: float = 1.0, client: str = "") -> Answered:
        return await self.core.answer(request, Deadline.after(left, self.clock), client)


@pytest.mark.parametrize(("scope", "reads"), [(ReadScope.GLOBAL, 10), (ReadScope.PER_SHARD, 20)])
async def test_a_question_is_counted_while_it_is_answered(scope: ReadScope, reads: int) -> None:
    house = House()
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    answered = await house.ask(AnswerRequest(question="Who?", read_scope=scope))
    assert (answered.passages_asked, answered.passages_granted) == (reads, reads)
    assert (house.echo.reads, house.echo.in_flight) == (reads, 1)
    assert house.registry.get_sample_value(IN_FLIGHT) == 0


@in_virtual_time
async def test_a_question_waits_until_the_front_knows_of_a_split_that_its_caller_knows_of() -> None:
    """The shard as it was never gets the writes of its halves."""
    house = House()
    looked = asyncio.Event()

    class Unsplit(Echo):
        @property
        def partition(self) -> Partition:  # type: ignore[override]
            looked.set()
            return Partition(2, range(2))

    house.echo = Unsplit(house.registry, house.load)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    later = Echo(house.registry, house.load)
    later.partition = Partition(2, range(2)).split(1)
    request = AnswerRequest(question="Who?", after=(Position(5, 7),))
    asking = asyncio.create_task(house.ask(request, left=60.0))
    await looked.wait()
    house.core.set_answerer(later)  # type: ignore[arg-type]
    await asking
    assert (house.echo.asked, later.asked) == (0, 1)


async def test_a_front_that_hears_of_no_split_asks_the_shard_after_a_while() -> None:
    house = House()
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    await house.ask(AnswerRequest(question="Who?", after=(Position(5, 7),)), left=0.01)
    assert house.echo.asked == 1


async def test_before_every_shard_was_found_questions_are_refused_but_invalid_ones_named() -> None:
    house = House()
    with pytest.raises(UnavailableError, match="not every shard of the index"):
        await house.ask(AnswerRequest(question="Who?"))
    with pytest.raises(InvalidRequestError, match="question: is empty"):
        await house.ask(AnswerRequest(question=""))


async def test_a_question_whose_deadline_has_passed_is_not_begun() -> None:
    house = House()
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    with pytest.raises(DeadlineExceededError, match="before the question was validated"):
        await house.ask(AnswerRequest(question="Who?"), left=0.0)
    assert house.echo.in_flight is None


async def test_a_known_answer_is_given_even_where_nothing_more_is_let_in() -> None:
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    await house.ask(AnswerRequest(question="Who?"))
    house.full()
    answered = await house.ask(AnswerRequest(question="Who?", answers=3))
    assert (answered.cached, house.echo.asked) == (True, 1)
    with pytest.raises(OverloadedError):
        await house.ask(AnswerRequest(question="Who?", fresh=True))


async def test_the_same_question_is_answered_in_the_turn_of_the_client_with_less_in_hand() -> None:
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    house.echo.lines["busy"] = asyncio.Event()
    words = ("One?", "Two?", "Three?")
    busy = [
        asyncio.create_task(house.ask(AnswerRequest(question=word), client="busy"))
        for word in words
    ]
    await happens(lambda: house.echo.asked == 3)
    idle = [
        asyncio.create_task(house.ask(AnswerRequest(question="Three?"), client=n)) for n in "xyz"
    ]
    answers = await asyncio.gather(*idle, busy[2])
    assert house.echo.asked == 4, "once more for all of them"
    assert [answer.cached for answer in answers] == [False, True, True, True]
    house.echo.lines["busy"].set()
    await asyncio.gather(*busy)


async def test_whether_a_question_was_cut_is_told_of_each_question_itself() -> None:
    """Longer ones may have the same tokens, as far as those are read."""
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    assert not (await house.ask(AnswerRequest(question="Who?"))).question_truncated
    known = await house.ask(AnswerRequest(question="Who? and more"))
    assert (known.cached, known.question_truncated) == (True, True)
    assert known.timings.total >= known.timings.tokenise > 0


async def test_a_known_answer_is_judged_by_the_minimum_confidence_of_each_caller() -> None:
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    house.echo.answers = (Answer(reading("a"), 0, 0.5),)
    asked = [AnswerRequest(question="Who?", min_confidence=each) for each in (None, 0.5, 0.6)]
    got = [await house.ask(request) for request in asked]
    assert [each.has_answer for each in got] == [False, True, False], "False is that of the score"
    assert [each.cached for each in got] == [False, True, True]


async def test_an_answer_of_another_size_is_another_answer() -> None:
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    sizes = [None, AnswerSize.AUTO, AnswerSize.SENTENCE, AnswerSize.SENTENCE]
    got = [await house.ask(AnswerRequest(question="Who?", answer_size=size)) for size in sizes]
    assert [each.cached for each in got] == [False, True, False, True], "AUTO is the default"


async def test_a_question_for_several_things_is_another_question() -> None:
    """Questions with the same tokens may differ in this, since long ones are cut."""
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    await house.ask(AnswerRequest(question="what is this"))
    assert not (await house.ask(AnswerRequest(question="what are these"))).cached


async def test_a_filter_may_name_what_the_index_has() -> None:
    house = House(remember=True)
    with pytest.raises(UnavailableError):  # whose fields are not known yet
        await house.ask(AnswerRequest(question="Who?", where="lagn = 1"))
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="filter: there is no field 'lagn': known are ye"):
        await house.ask(AnswerRequest(question="Who?", where="lagn = 1"))
    await house.ask(AnswerRequest(question="Who?", where="year = 1"))
    assert house.echo.asked == 1


async def test_who_waits_for_a_write_may_name_a_field_that_it_brings() -> None:
    house = House()
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    await house.ask(AnswerRequest(question="Who?", where="new = 1", after=(Position(0, 7),)))
    assert house.echo.asked == 1


async def test_an_answer_is_known_for_the_same_filter_however_it_is_written() -> None:
    house = House(remember=True)
    house.core.set_answerer(house.echo)  # type: ignore[arg-type]
    first = await house.ask(AnswerRequest(question="Who?", where="year >= 2010"))
    again = await house.ask(AnswerRequest(question="Who?", where="(year>=2010.0)"))
    others = [
        await house.ask(AnswerRequest(question="Who?", where=where))
        for where in ("", "year > 2010", "year = 1", "year = true", "year = '1'")
    ]
    assert [each.cached for each in (first, again)] == [False, True]
    assert not any(each.cached for each in others)
