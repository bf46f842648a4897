"""Vespa's adaptive timeout, on a manual clock.

The published examples are those of `InterleavedSearchInvokerTest` in Vespa's container-search.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.domain.question import WaitPolicy
from winnow.policy.shares import smallest_count_for_share
from winnow.stateless.policy.waiting import AdaptiveTimeout, Wait, policy_of_step

TIMEOUT = 5.0
FULL = WaitPolicy(min_coverage=1.0, min_wait_factor=0.0, max_wait_factor=0.5)
HALF = WaitPolicy(min_coverage=0.5, min_wait_factor=0.0, max_wait_factor=0.5)


def play(
    settings: WaitPolicy,
    asked: int,
    replies: list[float],
    failures: frozenset[int] = frozenset(),
) -> list[Wait]:
    """The waits asked for before each reply and after the last; `replies` are seconds apart."""
    clock = ManualClock()
    timeout = AdaptiveTimeout(settings, asked, Deadline.after(TIMEOUT, clock))
    waits = [timeout.next_wait(0)]
    for place, pause in enumerate(replies):
        clock.advance(pause)
        failed = sum(n <= place for n in failures)
        waits.append(timeout.next_wait(place + 1 - failed, failed))
    return waits


def milliseconds(waits: list[Wait]) -> list[int]:
    return [round(wait.seconds * 1000) for wait in waits]


@pytest.mark.parametrize(
    ("settings", "asked", "replies", "waits", "adaptive"),
    [
        pytest.param(FULL, 3, [0.1, 0.1], [5000, 4900, 4800], [0, 0, 0], id="full-coverage"),
        pytest.param(FULL, 3, [0.3, 0.3], [5000, 4700, 4400], [0, 0, 0], id="plain-timeout"),
        pytest.param(
            HALF, 4, [0.1] * 3, [5000, 4900, 2400, 0], [0, 0, 1, 1], id="less-once-reached"
        ),
    ],
)
def test_waits_are_those_that_vespa_publishes(
    settings: WaitPolicy,
    asked: int,
    replies: list[float],
    waits: list[int],
    adaptive: list[int],
) -> None:
    asked_for = play(settings, asked, replies)
    assert milliseconds(asked_for) == waits
    assert [wait.adaptive for wait in asked_for] == adaptive


def test_a_timeout_before_the_minimum_is_plain_also_where_waiting_may_adapt() -> None:
    """Vespa would report it as adaptive; it is the deadline that ended the wait."""
    last = play(HALF, 4, [0.1])[-1]
    assert (milliseconds([last]), last.adaptive) == ([4900], False)


@pytest.mark.parametrize(
    ("settings", "asked", "replies", "waits"),
    [
        # one of two missing: there is no slope, so the least is waited
        (WaitPolicy(0.5, 0.1, 0.5), 2, [1.0], [5000, 400]),
        # ten shards at 70 %: three missing is the most, then two, then one
        (WaitPolicy(0.7, 0.1, 0.5), 10, [0.0] * 9, [5000] * 7 + [2500, 1500, 500]),
        # the shares are of the time left when coverage was reached, not of what is left now
        (WaitPolicy(0.5, 0.2, 0.8), 4, [1.0, 1.0, 1.0], [5000, 4000, 2400, 600]),
        # a later wait never reaches past an earlier one
        (WaitPolicy(0.5, 0.5, 0.5), 4, [0.0, 0.0, 1.0], [5000, 5000, 2500, 1500]),
        # with a factor of 1 the deadline still rules
        (WaitPolicy(0.5, 1.0, 1.0), 4, [1.0, 1.0, 1.0], [5000, 4000, 3000, 2000]),
        # rounding does not ask for an eleventh of twenty shards at 55 %
        (WaitPolicy(0.55, 0.0, 0.0), 20, [0.0] * 11, [5000] * 11 + [0]),
        # a minimum of nothing still waits for the first answer
        (WaitPolicy(0.0, 0.0, 0.6), 4, [0.0], [5000, 2000]),
    ],
)
def test_waits_follow_the_rule(
    settings: WaitPolicy, asked: int, replies: list[float], waits: list[int]
) -> None:
    assert milliseconds(play(settings, asked, replies)) == waits


def test_a_factor_of_one_is_not_adaptive() -> None:
    assert not any(w.adaptive for w in play(WaitPolicy(0.5, 1.0, 1.0), 4, [0.7, 0.9, 0.1]))


def test_a_failure_is_neither_coverage_nor_waited_for() -> None:
    one_failed = play(HALF, 4, [0.1, 0.1], frozenset({0}))
    assert milliseconds(one_failed) == [5000, 4900, 4800], "one result of four is not half"
    reached = play(HALF, 4, [0.1, 0.1, 0.1], frozenset({0}))
    assert milliseconds(reached)[-1] == 0, "half answered and one is missing: the least is waited"


def test_nothing_is_waited_for_when_every_shard_replied() -> None:
    assert play(HALF, 2, [0.1, 0.1], frozenset({1}))[-1] == Wait(0.0, adaptive=False)


@pytest.mark.parametrize(
    ("coverage", "shards", "called", "failed", "least"),
    [
        (0.5, 4, 4, 0, 2),
        # the two that failed leave the two that are called to be half of four
        (0.5, 4, 2, 2, 2),
        # those with nothing to do cover their part, and take no time from the one that has
        (0.6, 3, 1, 0, 1),
        (0.5, 10, 4, 2, 2),
        (0.5, 10, 4, 5, 4),
        # out of reach: all that are left
        (0.75, 4, 2, 2, 2),
        # nothing answers no question
        (0.0, 1, 1, 0, 1),
        (0.0, 8, 8, 0, 1),
        (0.55, 20, 20, 0, 11),
        (0.55, 20, 14, 6, 11),
        (1.0, 3, 2, 1, 2),
        # no call, nothing to wait for
        (0.5, 2, 0, 2, 0),
    ],
)
def test_a_step_waits_for_its_part_and_for_the_minimum_of_the_question(
    coverage: float, shards: int, called: int, failed: int, least: int
) -> None:
    settings = policy_of_step(WaitPolicy(coverage, 0.2, 0.8), shards, called, failed)
    assert smallest_count_for_share(settings.min_coverage, called) == least
    assert (settings.min_wait_factor, settings.max_wait_factor) == (0.2, 0.8)


@pytest.mark.parametrize("coverage", [0.0, 0.3, 0.5])
def test_shards_that_found_nothing_end_no_wait(coverage: float) -> None:
    timeout = AdaptiveTimeout(WaitPolicy(coverage), 4, Deadline.after(TIMEOUT, ManualClock()))
    assert timeout.next_wait(0) == Wait(TIMEOUT, adaptive=False)
    assert timeout.next_wait(3, empty=3) == Wait(TIMEOUT, adaptive=False)
    assert timeout.next_wait(2, failed=1, empty=2) == Wait(TIMEOUT, adaptive=False)
    assert timeout.next_wait(3, empty=2) == Wait(0.0, adaptive=True)


shares = st.floats(0, 1)
settings_of = st.builds(
    lambda coverage, one, two: WaitPolicy(coverage, min(one, two), max(one, two)),
    shares,
    shares,
    shares,
)


@given(settings_of, st.integers(1, 12), st.data())
def test_the_moment_of_giving_up_is_within_the_deadline_and_never_moves_later(
    settings: WaitPolicy, asked: int, data: st.DataObject
) -> None:
    clock = ManualClock()
    deadline = Deadline.after(TIMEOUT, clock)
    timeout = AdaptiveTimeout(settings, asked, deadline)
    gives_up, answered, failed = deadline.at, 0, 0
    while answered + failed < asked:
        wait = timeout.next_wait(answered, failed)
        assert wait.seconds >= 0
        assert clock() + wait.seconds <= gives_up + 1e-9
        assert wait.adaptive or clock() + wait.seconds == pytest.approx(deadline.at)
        gives_up = clock() + wait.seconds
        clock.advance(wait.seconds * data.draw(shares))
        fails = data.draw(st.booleans())
        answered, failed = answered + (not fails), failed + fails


@given(settings_of, st.integers(1, 12), st.data())
def test_no_shard_is_given_up_by_policy_before_the_minimum_has_answered(
    settings: WaitPolicy, asked: int, data: st.DataObject
) -> None:
    failures = data.draw(st.frozensets(st.integers(0, asked - 1), max_size=asked))
    waits = play(settings, asked, [0.01] * (asked - 1), failures)
    minimum = smallest_count_for_share(settings.min_coverage, asked)
    for replies, wait in enumerate(waits):
        answered = replies - sum(n < replies for n in failures)
        if answered < minimum:
            assert not wait.adaptive
            assert wait.seconds == pytest.approx(TIMEOUT - 0.01 * replies)


@given(settings_of, st.integers(1, 12), st.integers(0, 12), st.integers(0, 12))
def test_no_shard_is_given_up_before_something_was_found(
    settings: WaitPolicy, asked: int, empty: int, failed: int
) -> None:
    timeout = AdaptiveTimeout(settings, asked, Deadline.after(TIMEOUT, ManualClock()))
    if empty + failed < asked:
        assert timeout.next_wait(empty, failed, empty) == Wait(TIMEOUT, adaptive=False)


@given(settings_of, st.integers(2, 12), st.integers(1, 11))
def test_the_fewer_are_missing_the_less_is_waited(
    settings: WaitPolicy, asked: int, answered: int
) -> None:
    def wait(answers: int) -> float:
        return (
            AdaptiveTimeout(settings, asked, Deadline.after(TIMEOUT, ManualClock()))
            .next_wait(answers)
            .seconds
        )

    answered = min(answered, asked - 2)
    assert wait(answered + 1) <= wait(answered) + 1e-9
