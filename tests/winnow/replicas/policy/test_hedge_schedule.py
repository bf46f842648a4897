"""The course of one request, on a clock that stands still."""

import random

import pytest
from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.replicas.policy.hedge_schedule import HedgeSchedule
from winnow.replicas.policy.hedging import HedgeDelay, HedgeSettings
from winnow.replicas.policy.outcomes import ReplicaOutcome
from winnow.replicas.policy.replicas import Attempt, Replicas, ReplicaSettings
from winnow.replicas.policy.retrying import RetrySettings

GONE = UnavailableError("gone")
LATE = DeadlineExceededError("late")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def own(clock: ManualClock) -> Replicas:
    return Replicas("abc", ReplicaSettings(), clock, random.Random(1))


def race(clock: ManualClock, usual: float | None = 0.1, left: float = 10.0) -> HedgeSchedule:
    """A request that usually takes `usual` seconds, is late after that, overdue after thrice."""
    delay = HedgeDelay(HedgeSettings(min_samples=1, overdue_factor=3.0), clock)
    if usual is not None:
        delay.observe(usual)
    return HedgeSchedule(
        RetrySettings(max_retries=1), delay.estimate(), 0.5, Deadline.after(left, clock)
    )


def send(run: HedgeSchedule, own: Replicas, hedge: bool = False) -> Attempt:
    attempt = own.take(run.tried)
    assert attempt is not None
    run.record_sent(attempt, hedge)
    return attempt


def test_while_little_is_known_a_request_is_overdue_once_patience_ends(
    clock: ManualClock, own: Replicas
) -> None:
    run = race(clock, usual=None)
    send(run, own)
    assert run.hedge_wait() == pytest.approx(0.5)
    assert run.pop_hedge() is True
    assert run.hedge_wait() is None


def test_a_request_is_late_once_and_overdue_once(clock: ManualClock, own: Replicas) -> None:
    run = race(clock)
    send(run, own)
    clock.advance(0.04)
    assert run.hedge_wait() == pytest.approx(0.06)
    clock.advance(0.1)
    assert run.hedge_wait() == 0.0
    assert run.pop_hedge() is False
    assert run.hedge_wait() == pytest.approx(0.16)
    assert run.pop_hedge() is True
    assert run.hedge_wait() is None


@pytest.mark.parametrize(
    ("left", "moments"), [(0.5, [(0.1, False), (0.25, True)]), (0.16, [(0.08, True)])]
)
def test_halfway_to_its_deadline_a_request_is_overdue_whatever_is_usual(
    clock: ManualClock, own: Replicas, left: float, moments: list[tuple[float, bool]]
) -> None:
    run = race(clock, usual=0.1, left=left)
    send(run, own)
    for seconds, overdue in moments:
        assert run.hedge_wait() == pytest.approx(seconds)
        assert run.pop_hedge() is overdue
    assert run.hedge_wait() is None


def test_no_second_hedge_comes_after_the_first(clock: ManualClock, own: Replicas) -> None:
    run = race(clock)
    send(run, own)
    run.pop_hedge()
    send(run, own, hedge=True)
    assert run.hedge_wait() is None


def test_a_retry_is_late_by_the_time_it_was_sent_itself(clock: ManualClock, own: Replicas) -> None:
    run = race(clock)
    send(run, own)
    clock.advance(0.08)
    assert run.claim_retry(GONE)
    send(run, own)
    assert run.hedge_wait() == pytest.approx(0.1)


def test_it_never_goes_to_the_same_replica_twice(clock: ManualClock, own: Replicas) -> None:
    run = race(clock)
    for _ in range(3):
        send(run, own)
    assert run.tried == {"a", "b", "c"}
    assert own.take(run.tried) is None


@pytest.mark.parametrize(
    ("error", "left", "again"),
    [
        (GONE, 10.0, True),
        (OverloadedError("full"), 10.0, True),
        (GONE, 0.09, False),  # it usually takes 0.1 s
        (LATE, 10.0, False),
        (IdentityError("other"), 10.0, False),
    ],
)
def test_it_is_retried_once_if_that_can_help(
    clock: ManualClock, own: Replicas, error: WinnowError, left: float, again: bool
) -> None:
    run = race(clock, left=left)
    send(run, own)
    assert run.claim_retry(error) is again
    assert not run.claim_retry(error) or not again


@pytest.mark.parametrize(
    ("error", "after", "outcome"),
    [
        (GONE, 0.0, ReplicaOutcome.FAILED),
        (OverloadedError("full"), 0.0, ReplicaOutcome.REFUSED),
        (LATE, 0.29, ReplicaOutcome.ABANDONED),
        (LATE, 0.31, ReplicaOutcome.FAILED),
        (None, 0.29, ReplicaOutcome.ABANDONED),
        (None, 0.31, ReplicaOutcome.FAILED),
    ],
)
def test_silence_is_held_against_a_replica_once_it_is_overdue(
    clock: ManualClock,
    own: Replicas,
    error: WinnowError | None,
    after: float,
    outcome: ReplicaOutcome,
) -> None:
    run = race(clock)
    attempt = send(run, own)
    clock.advance(after)
    assert run.outcome(attempt, error) is outcome


def test_before_anything_is_known_patience_says_what_is_overdue(
    clock: ManualClock, own: Replicas
) -> None:
    run = race(clock, usual=None)
    attempt = send(run, own)
    clock.advance(0.49)
    assert run.outcome(attempt, None) is ReplicaOutcome.ABANDONED
    clock.advance(0.02)
    assert run.outcome(attempt, None) is ReplicaOutcome.FAILED


def test_who_was_asked_before_the_winner_was_beaten(clock: ManualClock, own: Replicas) -> None:
    run = race(clock)
    first, hedge = send(run, own), send(run, own, hedge=True)
    assert run.loser_outcome(first, winner=hedge) is ReplicaOutcome.BEATEN
    assert run.loser_outcome(hedge, winner=first) is ReplicaOutcome.ABANDONED


def test_times_are_compared_with_what_is_typical(clock: ManualClock, own: Replicas) -> None:
    run, unknown = race(clock), race(clock, usual=None)
    attempt = send(run, own)
    unknown.record_sent(attempt)
    clock.advance(0.25)
    assert run.relative_latency(attempt) == pytest.approx(2.5)
    assert unknown.relative_latency(attempt) is None
