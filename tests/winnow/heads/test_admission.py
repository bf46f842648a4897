"""Who is let in with how many texts."""

import contextlib

import pytest
from manual_clock import ManualClock
from prometheus_client import CollectorRegistry

from winnow.errors import OverloadedError
from winnow.heads.admission import TextAdmission
from winnow.stateless.heads.metrics import HeadMetrics


class Admissions:
    """An admission and the calls that it has admitted."""

    def __init__(self, most: int) -> None:
        self.clock = ManualClock()
        self.admission = TextAdmission(most, HeadMetrics(CollectorRegistry()), self.clock)
        self.in_flight: list[contextlib.ExitStack] = []

    def enter(self, client: str, texts: int) -> bool:
        """Lets a request in, if there is room; it stays until it leaves."""
        stack = contextlib.ExitStack()
        try:
            stack.enter_context(self.admission.enter(texts, client))
        except OverloadedError:
            return False
        self.in_flight.append(stack)
        return True

    def leave(self) -> None:
        """The oldest request ends."""
        self.in_flight.pop(0).close()


def test_one_client_alone_may_have_everything() -> None:
    admissions = Admissions(64)
    assert [admissions.enter("a", 16) for _ in range(5)] == [True] * 4 + [False]
    admissions.leave()
    assert admissions.admission.in_flight == 48
    assert admissions.enter("a", 16)


def test_with_nothing_in_hand_any_request_is_let_in() -> None:
    admissions = Admissions(16)
    assert admissions.enter("a", 16)
    admissions.leave()
    assert admissions.enter("b", 16)


@pytest.mark.parametrize("texts", [1, 16])
def test_a_client_that_floods_leaves_room_for_one_that_comes_later(texts: int) -> None:
    admissions = Admissions(64)
    while admissions.enter("flood", 16):
        pass
    tries = 0
    while not admissions.enter("late", texts):
        tries += 1
        assert tries < 10, "it never got in"
        admissions.leave()
        admissions.enter("flood", 16)
        admissions.clock.advance(0.01)


def test_clients_that_all_want_more_get_equally_much() -> None:
    admissions = Admissions(64)
    served = {"a": 0, "b": 0, "c": 0}
    for _ in range(300):
        for client in served:
            served[client] += admissions.enter(client, 4)
        admissions.clock.advance(0.01)
        admissions.leave()
    assert max(served.values()) <= 1.5 * min(served.values()), served


def test_a_request_that_fails_frees_its_place() -> None:
    admissions = Admissions(16)
    with pytest.raises(ZeroDivisionError), admissions.admission.enter(16, "a"):
        raise ZeroDivisionError
    assert admissions.admission.in_flight == 0
