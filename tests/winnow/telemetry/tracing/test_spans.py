"""Pieces of work: what each is a part of, and how it ended."""

import asyncio
import itertools
import threading

import pytest
from tenacious import turn
from traced import Traced

from winnow.errors import InvalidRequestError, StoppedError, Violation
from winnow.telemetry.tracing.recorded import GIVEN_UP
from winnow.telemetry.tracing.span import NO_SPAN, SpanKind, current, span


def test_work_in_work_is_a_part_of_it() -> None:
    traced = Traced()
    with traced.begin() as whole, span("read") as part, span("passage", {"n": 1}, SpanKind.CLIENT):
        assert current().trace_id == whole.trace_id == part.trace_id
    assert [each.name for each in traced] == ["passage", "read", "call"]
    passage, read, call = traced
    assert traced.above(passage) == ["call", "read"]
    assert (call.parent, call.kind, passage.kind) == (0, SpanKind.SERVER, SpanKind.CLIENT)
    assert passage.attributes == {"n": 1}
    assert call.began <= read.began <= passage.began <= passage.ended <= read.ended <= call.ended


def test_after_the_end_the_whole_is_current_again() -> None:
    traced = Traced()
    with traced.begin() as whole:
        with span("one"):
            pass
        assert current() is whole
    assert current() is NO_SPAN


def test_where_nothing_is_traced_a_span_is_nothing_and_takes_everything() -> None:
    with span("read", {"n": 1}) as nothing, nothing.child("passage") as part:
        nothing.set("n", 2)
        nothing.set_fault("why")
        assert nothing is part is NO_SPAN
    assert not nothing
    assert (nothing.trace_id, nothing.exemplar, nothing.outgoing_metadata) == ("", None, ())


def test_an_error_is_named_by_its_kind_since_its_text_may_quote_a_question() -> None:
    traced = Traced()
    secret = InvalidRequestError(Violation("question", "who is Rosebud"))
    with pytest.raises(InvalidRequestError), traced.begin():
        raise secret
    assert traced[0].fault == "InvalidRequestError"
    assert "Rosebud" not in repr(traced[0].attributes)


@pytest.mark.parametrize(("why", "fault"), [("INTERNAL", "INTERNAL"), ("", "")])
def test_who_knows_better_says_whether_it_failed(why: str, fault: str) -> None:
    traced = Traced()
    whole = traced.begin()
    whole.set_fault(why)
    with pytest.raises(ZeroDivisionError), whole:
        raise ZeroDivisionError
    assert traced[0].fault == fault


@pytest.mark.parametrize("error", [asyncio.CancelledError, StoppedError])
def test_work_that_is_given_up_has_not_failed(error: type[BaseException]) -> None:
    traced = Traced()
    with pytest.raises(error), traced.begin():
        raise error
    assert traced[0].attributes == {GIVEN_UP: True}
    assert traced[0].fault is None


async def test_a_task_works_for_the_span_that_began_it_and_changes_no_other() -> None:
    traced = Traced()

    async def work() -> None:
        with span("work"):
            await turn()

    with traced.begin() as whole:
        tasks = [asyncio.create_task(work()) for _ in range(2)]
        await turn()
        assert current() is whole
    await asyncio.gather(*tasks)
    assert [traced.above(each) for each in traced.named("work")] == [["call"]] * 2


async def test_a_task_that_is_cancelled_ends_its_span() -> None:
    traced = Traced()

    async def hang() -> None:
        with span("hang"):
            await asyncio.Event().wait()

    with traced.begin():
        task = asyncio.create_task(hang())
        await turn()
        task.cancel()
        await asyncio.wait([task])
    assert traced.one("hang").attributes == {GIVEN_UP: True}


def test_a_thread_is_told_what_it_works_for() -> None:
    traced = Traced()
    with traced.begin() as whole:

        def work() -> None:
            assert current() is NO_SPAN
            with whole.child("passage") as part:
                assert current() is part

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert traced.above(traced.one("passage")) == ["call"]


def test_nothing_is_said_of_work_that_has_ended() -> None:
    """Another thread reads what was said, to send it."""
    traced = Traced()
    with traced.begin() as whole:
        pass
    whole.set("n", 1)
    assert traced[0].attributes == {}


def test_ids_are_never_the_same() -> None:
    traced = Traced()
    with traced.begin():
        for _ in range(100):
            with span("part"):
                pass
    with traced.begin():
        pass
    assert len({each.id for each in traced}) == len(traced)
    assert len({each.trace.id for each in traced}) == 2
    assert all(0 < each.id < 1 << 64 for each in traced)


def test_a_part_never_begins_before_the_whole_though_the_calendar_is_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calendar = itertools.count(10**18, -(10**9))
    monkeypatch.setattr("time.time_ns", lambda: next(calendar))
    traced = Traced()
    with traced.begin(), span("part"):
        pass
    part, whole = traced
    assert whole.began <= part.began <= part.ended <= whole.ended
    assert abs(whole.began - 10**18) < 10**9
