"""Which questions are let in, and how many passages are read for them."""

import asyncio
import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.domain.question import Question, ReadScope, Retriever
from winnow.errors import OverloadedError
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.stateless.answer.admission import Admission
from winnow.stateless.metrics import AdmissionMetrics

SETTINGS = LoadSettings(
    max_reads=100,
    usable_share=1.0,
    calm_share=0.5,
    min_granted_share=0.3,
    reserved_share=0.0,
    min_retry_after=0.05,
)


class House:
    """A admission where every read takes `pace` seconds."""

    def __init__(
        self, pace: float | None = 0.01, most: int = 64, settings: LoadSettings = SETTINGS
    ) -> None:
        self.registry = CollectorRegistry()
        self.clock = ManualClock()
        self.load = ReadLoad(settings, self.clock, lambda: pace)
        metrics = AdmissionMetrics(self.registry)
        self.admission = Admission(self.load, most, metrics, clock=self.clock, typical_reads=10)

    def refused(self, question: Question, left: float = 1.0, client: str = "") -> bool:
        """Whether a question is refused now."""
        try:
            with self.admission.enter(question, 1, left, client):
                return False
        except OverloadedError:
            return True

    def hold(self, stack: contextlib.ExitStack, question: Question, client: str = "") -> None:
        """Lets questions in until one is refused, and keeps them."""
        with contextlib.suppress(OverloadedError):
            while True:
                stack.enter_context(self.admission.enter(question, 1, 1.0, client))

    def count(self, result: str) -> float | None:
        return self.registry.get_sample_value("winnow_front_admissions_total", {"result": result})


def asked(passages: int, scope: ReadScope = ReadScope.GLOBAL) -> Question:
    return Question(
        text="who",
        passages_to_read=passages,
        answers=3,
        read_scope=scope,
        retriever=Retriever.DENSE,
        max_answer_tokens=10,
    )


def test_while_it_is_calm_a_question_is_asked_as_it_is() -> None:
    house = House()
    with house.admission.enter(asked(10), 3, 1.0, "") as admitted:
        assert (admitted.question, admitted.requested_reads, admitted.granted_reads) == (
            asked(10),
            10,
            10,
        )
        assert house.load.reads_in_flight == 10
    assert (house.load.reads_in_flight, house.admission.in_flight) == (0, 0)
    assert house.count("granted") == 1


def test_per_shard_the_work_grows_with_the_shards() -> None:
    house = House()
    with house.admission.enter(asked(10, ReadScope.PER_SHARD), 4, 1.0, "") as admitted:
        assert (admitted.question.passages_to_read, admitted.requested_reads) == (10, 40)
        assert house.load.reads_in_flight == 40


@pytest.mark.parametrize(
    ("scope", "shards", "passages", "granted"),
    [(ReadScope.GLOBAL, 3, 6, 6), (ReadScope.PER_SHARD, 3, 6, 18)],
)
def test_under_pressure_fewer_passages_are_read_and_that_is_said(
    scope: ReadScope, shards: int, passages: int, granted: int
) -> None:
    house = House()
    question = asked(10, scope)
    with (
        house.admission.enter(asked(80), 3, 1.0, ""),
        house.admission.enter(question, shards, 1.0, "") as admitted,
    ):
        assert admitted.question.passages_to_read == passages
        assert admitted.granted_reads == granted
        assert admitted.granted_reads < admitted.requested_reads
    assert house.count("dimmed") == 1


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
@pytest.mark.parametrize("passages", [1, 2, 10])
def test_per_shard_the_work_that_is_counted_is_the_work_that_is_granted(
    shards: int, passages: int
) -> None:
    house = House()
    with contextlib.ExitStack() as stack, contextlib.suppress(OverloadedError):
        granted = 0
        while True:
            admitted = stack.enter_context(
                house.admission.enter(asked(passages, ReadScope.PER_SHARD), shards, 1.0, "")
            )
            granted += admitted.granted_reads
            assert admitted.granted_reads == admitted.question.passages_to_read * shards
            assert granted == house.load.reads_in_flight <= 100


def test_what_cannot_be_in_time_is_refused_and_told_when_to_come_back() -> None:
    house = House()
    with (
        house.admission.enter(asked(50), 1, 1.0, ""),
        pytest.raises(OverloadedError) as caught,
        house.admission.enter(asked(10), 1, 0.1, ""),
    ):
        pass
    assert caught.value.retry_after > 0
    assert house.count("refused") == 1
    assert (house.load.reads_in_flight, house.admission.in_flight) == (0, 0)


def test_one_client_does_not_take_what_another_needs() -> None:
    house = House(settings=replace(SETTINGS, min_granted_share=1.0, reserved_share=0.2))
    with house.admission.enter(asked(10), 1, 1.0, "modest"):
        pass
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OverloadedError):
            while True:
                stack.enter_context(house.admission.enter(asked(10), 1, 1.0, "greedy"))
        assert house.count("refused") == 1
        with house.admission.enter(asked(10), 1, 1.0, "modest") as admitted:
            assert admitted.granted_reads == 10


def test_questions_are_bounded_whatever_they_ask_for() -> None:
    house = House(pace=None, most=1)
    with (
        house.admission.enter(asked(1), 1, 1.0, ""),
        pytest.raises(OverloadedError, match="1 of at most 1 questions"),
        house.admission.enter(asked(1), 1, 1.0, ""),
    ):
        pass
    with house.admission.enter(asked(1), 1, 1.0, ""):
        assert house.admission.in_flight == 1


def test_one_client_does_not_take_every_place() -> None:
    house = House(pace=None, most=64, settings=replace(SETTINGS, max_reads=10_000))
    with house.admission.enter(asked(1), 1, 1.0, "polite"):
        pass
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OverloadedError):
            while True:
                stack.enter_context(house.admission.enter(asked(1), 1, 1.0, "greedy"))
        assert 50 <= house.admission.in_flight < 64
        for _ in range(3):
            with house.admission.enter(asked(1), 1, 1.0, "polite"):
                pass


def test_a_question_that_is_given_up_keeps_its_place_for_a_second() -> None:
    """Otherwise a client that asks and gives up at once would have no bound."""
    house = House(pace=None, most=1)
    with pytest.raises(asyncio.CancelledError), house.admission.enter(asked(1), 1, 1.0, ""):
        raise asyncio.CancelledError
    assert (house.load.reads_in_flight, house.admission.in_flight) == (0, 1)
    assert house.refused(asked(1))
    house.clock.advance(1.0)
    assert not house.refused(asked(1))
    assert house.admission.in_flight == 0


def test_a_question_that_is_given_up_late_frees_its_place_at_once() -> None:
    house = House(pace=None, most=1)
    entered = house.admission.enter(asked(1), 1, 1.0, "")
    entered.__enter__()
    house.clock.advance(1.0)
    error = asyncio.CancelledError()
    assert not entered.__exit__(type(error), error, None)
    assert house.admission.in_flight == 0


def test_who_gives_up_everything_at_once_takes_no_place_of_others() -> None:
    house = House(
        pace=None, most=10, settings=replace(SETTINGS, max_reads=10_000, reserved_share=0.2)
    )
    with house.admission.enter(asked(1), 1, 1.0, "polite"):
        pass
    for _ in range(100):
        with (
            contextlib.suppress(OverloadedError, asyncio.CancelledError),
            house.admission.enter(asked(1), 1, 1.0, "hasty"),
        ):
            raise asyncio.CancelledError
        assert not house.refused(asked(1), client="polite")
    assert house.admission.in_flight <= 8


def test_a_question_that_fails_gives_its_room_back() -> None:
    house = House()
    with pytest.raises(ZeroDivisionError), house.admission.enter(asked(10), 1, 1.0, ""):
        raise ZeroDivisionError
    assert (house.load.reads_in_flight, house.admission.in_flight) == (0, 0)


@pytest.mark.parametrize(("passages", "most"), [(10, 64), (1, 5)])
def test_who_asks_again_at_once_is_refused_unseen(passages: int, most: int) -> None:
    """For want of time to read, or of a place."""
    house = House(most=most)
    with contextlib.ExitStack() as stack:
        assert house.admission.refusal("") is None
        house.hold(stack, asked(passages))
        refused = house.admission.refusal("")
        assert refused is not None
        assert refused.retry_after >= SETTINGS.min_retry_after
        assert house.count("refused") == 2
        assert house.admission.refusal("another") is None


def test_who_waits_as_it_was_told_is_looked_at_again() -> None:
    house = House()
    with contextlib.ExitStack() as stack:
        house.hold(stack, asked(10))
        house.clock.advance(SETTINGS.min_retry_after)
        assert house.admission.refusal("") is None


def test_once_a_question_has_ended_everybody_is_looked_at_again() -> None:
    house = House()
    with contextlib.ExitStack() as stack:
        with house.admission.enter(asked(10), 1, 1.0, "other"):
            house.hold(stack, asked(10))
            assert house.admission.refusal("") is not None
        assert house.admission.refusal("") is None


@pytest.mark.parametrize(("passages", "left"), [(1_000, 1.0), (10, 0.011)])
def test_a_question_that_asks_too_much_closes_the_door_to_no_other(
    passages: int, left: float
) -> None:
    """Of more passages than anybody has time for, or of a deadline that is too short."""
    house = House()
    with house.admission.enter(asked(10), 1, 1.0, "other"):
        assert house.refused(asked(passages), left)
        assert house.admission.refusal("") is None
        assert not house.refused(asked(10))


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 40), st.floats(0.05, 3.0), st.booleans()),
        max_size=40,
    )
)
def test_nobody_is_refused_unseen_whose_usual_question_would_be_let_in(
    calls: list[tuple[str, int, float, bool]],
) -> None:
    house = House(most=8)
    with contextlib.ExitStack() as every:
        held: list[contextlib.ExitStack] = []
        for client, passages, left, ends in calls:
            if ends and held:
                held.pop(0).close()
            question = every.enter_context(contextlib.ExitStack())
            with contextlib.suppress(OverloadedError):
                question.enter_context(house.admission.enter(asked(passages), 1, left, client))
                held.append(question)
            house.clock.advance(0.01)
            for one in "abc":
                assert house.admission.refusal(one) is None or house.refused(asked(10), 9.0, one)
