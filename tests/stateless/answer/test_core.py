"""The answer core, without any transport."""

import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from stateless.answer.admission import Admission, Admitted
from stateless.answer.core import AnswerCore
from stateless.answer.validation import Defaults
from stateless.metrics import AdmissionMetrics, FrontMetrics
from winnow.deadline import Deadline
from winnow.domain.answered import Answered, Timings
from winnow.domain.coverage import Coverage
from winnow.domain.question import ReadScope
from winnow.domain.request import AnswerRequest
from winnow.errors import DeadlineExceededError, InvalidRequestError, UnavailableError
from winnow.policy.load import Load, LoadSettings

IN_FLIGHT = "winnow_front_questions_in_flight"


class Echo:
    """An answerer that says what it was given."""

    shards = 2

    def __init__(self, registry: CollectorRegistry, load: Load) -> None:
        self._registry, self._load = registry, load
        self.in_flight: float | None = None
        self.reads = 0

    async def answer(self, admitted: Admitted, deadline: Deadline) -> Answered:
        self.in_flight = self._registry.get_sample_value(IN_FLIGHT)
        self.reads = self._load.reads
        scope = admitted.question.read_scope
        work = (admitted.asked, admitted.granted, 0)
        return Answered((), False, Coverage(()), Timings(), *work, scope, False)


class House:
    """A core and what it is made of."""

    def __init__(self) -> None:
        self.registry, self.clock = CollectorRegistry(), ManualClock()
        load = Load(LoadSettings(), self.clock, lambda: None)
        admission = Admission(load, 64, AdmissionMetrics(self.registry))
        defaults = Defaults(10, 3, ReadScope.GLOBAL, 10)
        self.core = AnswerCore(defaults, admission, FrontMetrics(self.registry))
        self.echo = Echo(self.registry, load)

    async def ask(self, request: AnswerRequest, left: float = 1.0) -> Answered:
        return await self.core.ask(request, Deadline.after(left, self.clock))


@pytest.mark.parametrize(("scope", "reads"), [(ReadScope.GLOBAL, 10), (ReadScope.PER_SHARD, 20)])
async def test_a_question_is_counted_while_it_is_answered(scope: ReadScope, reads: int) -> None:
    house = House()
    house.core.serve(house.echo)  # type: ignore[arg-type]
    answered = await house.ask(AnswerRequest("Who?", read_scope=scope))
    assert (answered.passages_asked, answered.passages_granted) == (reads, reads)
    assert (house.echo.reads, house.echo.in_flight) == (reads, 1)
    assert house.registry.get_sample_value(IN_FLIGHT) == 0


async def test_before_every_shard_was_found_questions_are_refused_but_invalid_ones_named() -> None:
    house = House()
    with pytest.raises(UnavailableError, match="not every shard of the index"):
        await house.ask(AnswerRequest("Who?"))
    with pytest.raises(InvalidRequestError, match="question: is empty"):
        await house.ask(AnswerRequest(""))


async def test_a_question_whose_deadline_has_passed_is_not_begun() -> None:
    house = House()
    house.core.serve(house.echo)  # type: ignore[arg-type]
    with pytest.raises(DeadlineExceededError, match="before the question was looked at"):
        await house.ask(AnswerRequest("Who?"), left=0.0)
    assert house.echo.in_flight is None
