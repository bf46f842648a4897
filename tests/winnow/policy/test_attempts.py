"""Who waits for the attempt of another caller, who tries, and who takes the best result so far."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.deadline import Deadline
from winnow.errors import UnavailableError
from winnow.policy.attempts import (
    EndedAttempt,
    FlightAttempt,
    FlightWaiter,
    Lack,
    NextStep,
    SingleFlightCaller,
)

SETTLE, WAIT, TRY = NextStep.SETTLE, NextStep.WAIT, NextStep.TRY
NOTHING, TIME, SHARE, ROOM = Lack.NOTHING, Lack.TIME, Lack.SHARE, Lack.ROOM
FAILED = UnavailableError("gone")


class Desk:
    """Askers at one moment, with what is in hand for each client."""

    def __init__(self, **in_hand: int) -> None:
        self.clock, self.in_hand, self.room = ManualClock(), in_hand, True

    def asker(self, client: str = "a", left: float = 2.0) -> SingleFlightCaller:
        deadline = Deadline.after(left, self.clock)
        return SingleFlightCaller(
            deadline=deadline,
            client=client,
            work=10,
            work_in_flight=lambda: self.in_hand.get(client, 0),
            has_room_for_attempt=lambda: self.room,
        )

    def attempt(self, client: str = "a", left: float = 2.0) -> FlightAttempt:
        """One that begins, and is in hand from now on."""
        attempt = FlightAttempt(self.asker(client, left))
        attempt.record_start()
        self.in_hand[client] = self.in_hand.get(client, 0) + 10
        return attempt


def poor(attempt: FlightAttempt, lack: Lack, worth: int = 1) -> EndedAttempt[str]:
    return EndedAttempt(attempt, lack, result="poor", worth=worth)


def failed(attempt: FlightAttempt, lack: Lack) -> EndedAttempt[str]:
    return EndedAttempt(attempt, lack, error=FAILED)


def test_who_comes_first_tries_and_waits_for_its_own_attempt() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker())
    assert waiting.next_step([]) is TRY
    waiting.own_attempt = desk.attempt()
    assert waiting.next_step([waiting.own_attempt]) is WAIT
    waiting.record_end(EndedAttempt(waiting.own_attempt, NOTHING, result="whole"))
    assert (waiting.next_step([]), waiting.outcome().result) == (SETTLE, "whole")


@pytest.mark.parametrize(
    ("left", "step"), [(0.5, TRY), (1.98, TRY), (1.995, WAIT), (2.0, WAIT), (9.0, WAIT)]
)
def test_who_comes_later_waits_for_an_attempt_that_ends_before_its_deadline(
    left: float, step: NextStep
) -> None:
    """Deadlines that were set at once differ a little."""
    desk = Desk()
    flying = [desk.attempt(left=2.0)]
    assert FlightWaiter[str](desk.asker(left=left)).next_step(flying) is step


@pytest.mark.parametrize(
    ("before", "own", "step"),
    [(0, 0, WAIT), (9, 0, WAIT), (10, 0, TRY), (30, 0, TRY), (30, 20, TRY), (30, 21, WAIT)],
)
def test_who_has_a_clearly_better_turn_tries_beside_the_attempt_of_another(
    before: int, own: int, step: NextStep
) -> None:
    """`before` passages are read for the first client before its question."""
    desk = Desk(busy=before, idle=own)
    flying = [desk.attempt("busy")]
    assert FlightWaiter[str](desk.asker("idle")).next_step(flying) is step
    assert FlightWaiter[str](desk.asker("busy")).next_step(flying) is WAIT, (
        "its own line is no shorter"
    )


def test_what_came_before_an_attempt_counts_only_until_it_is_done() -> None:
    desk = Desk(busy=30)
    flying = [desk.attempt("busy")]
    desk.in_hand["busy"] = 10
    assert FlightWaiter[str](desk.asker("idle")).next_step(flying) is WAIT


def test_who_tried_in_a_better_turn_and_was_refused_waits_for_the_other_attempt() -> None:
    desk = Desk(busy=30)
    slow = desk.attempt("busy")
    waiting = FlightWaiter[str](desk.asker("idle"))
    waiting.own_attempt = desk.attempt("idle")
    waiting.record_end(failed(waiting.own_attempt, SHARE))
    assert waiting.next_step([slow]) is WAIT
    waiting.record_end(EndedAttempt(slow, NOTHING, result="whole"))
    assert waiting.next_step([]) is SETTLE
    assert waiting.outcome().result == "whole"


@pytest.mark.parametrize(
    ("ended", "lack", "client", "left", "room", "step"),
    [
        (poor, NOTHING, "b", 9.0, True, SETTLE),
        (failed, NOTHING, "b", 9.0, True, SETTLE),
        (poor, TIME, "b", 2.0, True, SETTLE),
        (poor, TIME, "a", 2.1, True, TRY),
        (failed, TIME, "b", 2.0, True, SETTLE),
        (failed, TIME, "a", 2.1, True, TRY),
        (poor, SHARE, "a", 2.0, True, SETTLE),
        (poor, SHARE, "b", 2.0, True, TRY),
        (poor, SHARE, "a", 2.1, True, TRY),
        (failed, SHARE, "a", 2.0, True, SETTLE),
        (failed, SHARE, "b", 1.0, True, TRY),
        (poor, ROOM, "a", 2.0, False, SETTLE),
        (poor, ROOM, "b", 9.0, False, SETTLE),
        (poor, ROOM, "a", 1.0, True, TRY),
        (poor, TIME | SHARE, "b", 1.0, True, TRY),
    ],
)
def test_it_is_tried_again_only_by_who_has_what_the_first_attempt_lacked(
    ended: Callable[[FlightAttempt, Lack], EndedAttempt[str]],
    lack: Lack,
    client: str,
    left: float,
    room: bool,
    step: NextStep,
) -> None:
    desk = Desk()
    desk.room = room
    waiting = FlightWaiter[str](desk.asker(client, left))
    waiting.record_end(ended(desk.attempt("a", 2.0), lack))
    assert waiting.next_step([]) is step


def test_of_those_who_would_try_again_all_but_one_wait_for_the_next_attempt() -> None:
    desk = Desk()
    first, second = desk.attempt("a", 0.1), desk.attempt("b", 2.0)
    waiting = FlightWaiter[str](desk.asker("c", 2.0))
    waiting.record_end(failed(first, TIME))
    assert waiting.next_step([second]) is WAIT


def test_nobody_waits_for_attempt_after_attempt_with_too_little_time() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("c", 2.0))
    waiting.record_end(failed(desk.attempt("a", 0.1), TIME))
    assert waiting.next_step([desk.attempt("b", 0.1)]) is TRY


def test_after_two_clients_were_refused_a_third_takes_what_there_is() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("c"))
    waiting.record_end(poor(desk.attempt("a"), SHARE))
    assert waiting.next_step([desk.attempt("b")]) is WAIT
    waiting.record_end(failed(desk.attempt("b"), SHARE))
    assert (waiting.next_step([]), waiting.outcome().result) == (SETTLE, "poor")


def test_after_two_clients_were_refused_everything_a_third_waits_for_no_other() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("c"))
    for client in "ab":
        waiting.record_end(failed(desk.attempt(client), SHARE))
    assert waiting.next_step([desk.attempt("d")]) is TRY


def test_a_poor_result_is_better_than_the_failure_of_an_own_attempt() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("b"))
    waiting.record_end(poor(desk.attempt("a"), SHARE))
    waiting.own_attempt = desk.attempt("b")
    waiting.record_end(failed(waiting.own_attempt, SHARE))
    assert waiting.next_step([]) is SETTLE
    assert waiting.outcome().result == "poor"


def test_a_poorer_own_result_does_not_replace_a_better_one() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("b"))
    waiting.record_end(poor(desk.attempt("a"), SHARE, worth=2))
    waiting.own_attempt = desk.attempt("b")
    waiting.record_end(poor(waiting.own_attempt, SHARE, worth=1))
    assert waiting.outcome().worth == 2


@pytest.mark.parametrize("lack", [TIME, SHARE, ROOM])
def test_who_made_a_result_in_a_better_turn_does_not_wait_for_the_other_attempt(
    lack: Lack,
) -> None:
    desk = Desk(busy=30)
    slow = desk.attempt("busy", 9.0)
    waiting = FlightWaiter[str](desk.asker("idle", 9.0))
    waiting.own_attempt = desk.attempt("idle", 1.0)
    waiting.record_end(poor(waiting.own_attempt, lack))
    assert waiting.next_step([slow]) is SETTLE


def test_who_fails_is_told_of_its_own_failure_before_those_of_others() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("b"))
    waiting.record_end(failed(desk.attempt("a"), SHARE))
    waiting.own_attempt = desk.attempt("b")
    own = failed(waiting.own_attempt, SHARE)
    waiting.record_end(own)
    assert waiting.outcome() is own


def test_a_result_that_is_of_no_use_to_an_asker_is_none() -> None:
    desk = Desk()
    waiting = FlightWaiter[str](desk.asker("b"), lambda result: result != "old")
    waiting.record_end(EndedAttempt(desk.attempt("a"), NOTHING, result="old"))
    assert waiting.next_step([]) is TRY


@dataclass(frozen=True)
class Comes:
    """When an asker comes, how long it waits, whether it leaves, and how its attempt would go."""

    at: float
    client: str
    left: float
    leaves: float | None
    takes: float
    lack: Lack
    fails: bool
    behind: int


COMES = st.builds(
    Comes,
    st.sampled_from([0.0, 0.0, 0.1, 0.5]),
    st.sampled_from("abc"),
    st.sampled_from([0.1, 1.0, 1.0, 5.0]),
    st.sampled_from([None, None, 0.05, 0.3]),
    st.sampled_from([0.0, 0.05, 0.4, 9.0]),
    st.sampled_from([NOTHING, NOTHING, TIME, SHARE, ROOM, TIME | SHARE]),
    st.booleans(),
    st.sampled_from([0, 0, 30]),
)


@dataclass(eq=False)
class Seen:
    """What became of an asker."""

    comes: Comes
    waiting: FlightWaiter[str]
    told: list[EndedAttempt[str]] = field(default_factory=list)
    settled: float | None = None
    outcome: EndedAttempt[str] | None = None
    """What it settled with."""
    left: bool = False


class Flight:
    """Askers and attempts on a clock that jumps from event to event."""

    def __init__(self, script: list[Comes]) -> None:
        self.clock, self.order = ManualClock(0.0), count()
        self.flying: dict[FlightAttempt, Seen] = {}
        self.askers: list[Seen] = []
        self.begun = 0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        for each in script:
            self.at(each.at, partial(self.come, each))
        while self.events:
            self.clock.now, _, event = heapq.heappop(self.events)
            event()

    def at(self, when: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), event))

    def come(self, comes: Comes) -> None:
        deadline = Deadline.after(comes.left, self.clock)
        asker = SingleFlightCaller(
            deadline=deadline, client=comes.client, work=10, work_in_flight=lambda: comes.behind
        )
        seen = Seen(comes, FlightWaiter(asker))
        self.askers.append(seen)
        if comes.leaves is not None:
            self.at(self.clock.now + comes.leaves, lambda: self.leave(seen))
        self.step(seen)

    def leave(self, seen: Seen) -> None:
        if seen.settled is None:
            seen.left = True
            if all(each.left or each.settled is not None for each in self.askers):
                self.flying.clear()

    def step(self, seen: Seen) -> None:
        if seen.left or seen.settled is not None:
            return
        match seen.waiting.next_step(self.flying):
            case NextStep.SETTLE:
                seen.settled, seen.outcome = self.clock.now, seen.waiting.outcome()
            case NextStep.TRY:
                self.begin(seen)
            case NextStep.WAIT:
                assert self.flying, "somebody waits for nothing"

    def begin(self, seen: Seen) -> None:
        assert seen.waiting.own_attempt is None, "tried twice"
        seen.waiting.own_attempt = attempt = FlightAttempt(seen.waiting.caller)
        attempt.record_start()
        self.begun += 1
        self.flying[attempt] = seen
        ends = min(self.clock.now + seen.comes.takes, attempt.caller.deadline.at)
        self.at(ends, lambda: self.end(attempt, seen.comes))

    def end(self, attempt: FlightAttempt, comes: Comes) -> None:
        if self.flying.pop(attempt, None) is None:
            return
        late = comes.takes > attempt.seconds
        lack = TIME if late else comes.lack
        ended = failed(attempt, lack) if late or comes.fails else poor(attempt, lack)
        here = [each for each in self.askers if not each.left and each.settled is None]
        for each in here:
            each.told.append(ended)
            each.waiting.record_end(ended)
        for each in here:
            self.step(each)


_REFUSED = Comes(0.0, "a", 0.1, None, 0.0, SHARE, True, 0)
_WAITS = Comes(0.0, "a", 0.1, None, 0.0, NOTHING, False, 0)


@given(st.lists(COMES, min_size=1, max_size=12))
@example([_REFUSED, _WAITS, replace(_REFUSED, client="b"), _WAITS])
@example(
    [
        replace(_REFUSED, left=1.0),
        *[replace(_WAITS, left=1.0)] * 3,
        Comes(0.0, "b", 0.1, None, 0.4, NOTHING, False, 0),
    ]
)
def test_with_any_askers_and_any_failures_each_is_served_as_well_as_alone(
    script: list[Comes],
) -> None:
    flight = Flight(script)
    assert flight.begun <= len(script)
    for seen in flight.askers:
        if seen.left:
            continue
        assert seen.settled is not None, "nobody waits for ever"
        assert seen.settled <= seen.waiting.caller.deadline.at + 0.011, "nor beyond its deadline"
        results = [each for each in seen.told if each.error is None]
        outcome = seen.outcome
        assert outcome is not None
        assert (outcome.error is None) == bool(results), "no result is thrown away"
        if any(each.lack is NOTHING for each in results):
            assert outcome.lack is NOTHING
        if outcome.error is not None and seen.waiting.own_attempt is None:
            client, left = outcome.attempt.caller.client, outcome.attempt.seconds
            assert (
                outcome.lack is NOTHING
                or SHARE not in outcome.lack
                or (client == seen.comes.client)
            ), "nobody gets the refusal of another client"
            if TIME in outcome.lack:
                assert seen.comes.at + seen.comes.left - seen.settled <= left + 0.011


@given(st.integers(1, 40), st.sampled_from([NOTHING, ROOM, TIME]), st.booleans())
def test_equal_askers_at_once_make_one_attempt(askers: int, lack: Lack, fails: bool) -> None:
    """A shard that is down, pressure and hung shards are the same for all of them."""
    desk = Desk()
    desk.room = False
    waiting = [FlightWaiter[str](desk.asker()) for _ in range(askers)]
    assert waiting[0].next_step([]) is TRY
    own = waiting[0].own_attempt = desk.attempt()
    assert all(each.next_step([own]) is WAIT for each in waiting)
    for each in waiting:
        each.record_end(failed(own, lack) if fails else poor(own, lack))
    assert all(each.next_step([]) is SETTLE for each in waiting)
