"""What is recorded of the calls of one question."""

import asyncio
from dataclasses import replace

import pytest
from fakes import reading
from manual_clock import ManualClock
from tenacious import turn

from winnow.domain.answered import ShardTimings
from winnow.domain.shard_call import NEVER, CallKind, CallOutcome, Interval, ReadTime, ShardCall
from winnow.errors import UnavailableError
from winnow.searcher import Read, Retrieved
from winnow.stateless.answer.recording import CallRecorder

EIGHTH = Interval(0.125, 0.5)


async def test_a_call_is_placed_in_the_time_of_the_question_and_its_work_in_the_call() -> None:
    clock = ManualClock()
    recording = CallRecorder(clock=clock)
    clock.advance(2)
    read = Read((replace(reading("a"), span=EIGHTH),), ShardTimings(), retrieved=EIGHTH)

    async def send() -> Read:
        clock.advance(3)
        return read

    assert await recording.call(7, CallKind.SEARCH, send) is read
    clock.advance(1)
    reads = (ReadTime("a", Interval(2.125, 0.5)),)
    told = ShardCall(
        shard=7,
        kind=CallKind.SEARCH,
        outcome=CallOutcome.ANSWERED,
        span=Interval(2, 3),
        retrieved=Interval(2.125, 0.5),
        reads=reads,
    )
    assert recording.calls() == (told,)


async def test_what_did_not_happen_has_no_time() -> None:
    recording = CallRecorder(clock=ManualClock())

    async def send() -> Retrieved:
        return Retrieved((), (), ShardTimings())

    await recording.call(0, CallKind.RETRIEVE, send)
    (call,) = recording.calls()
    assert (call.retrieved, call.reads) == (NEVER, ())


async def test_a_call_that_fails_is_told_apart_from_one_that_nobody_waits_for() -> None:
    clock = ManualClock()
    recording = CallRecorder(clock=clock)

    async def fail() -> None:
        clock.advance(1)
        raise UnavailableError("gone")

    async def hang() -> None:
        await asyncio.Event().wait()

    with pytest.raises(UnavailableError, match="gone"):
        await recording.call(0, CallKind.READ, fail)
    hanging = asyncio.create_task(recording.call(1, CallKind.READ, hang))
    await turn()
    clock.advance(4)
    before = recording.calls()
    hanging.cancel()
    await asyncio.wait([hanging])
    assert recording.calls() == before
    assert [(each.outcome, each.span) for each in before] == [
        (CallOutcome.FAILED, Interval(0, 1)),
        (CallOutcome.ABANDONED, Interval(1, 4)),
    ]


@pytest.mark.filterwarnings("error")
async def test_a_call_that_is_given_up_before_it_is_sent_leaves_nothing_behind() -> None:
    recording = CallRecorder(clock=ManualClock())

    async def send() -> None:
        raise AssertionError

    begun = asyncio.create_task(recording.call(0, CallKind.READ, send))
    begun.cancel()
    await asyncio.wait([begun])
    assert recording.calls() == ()
