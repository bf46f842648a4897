"""Who may have how much of what is too little for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock

from winnow.policy.fairness import FairShares

LIMIT = 120.0


def shares(
    held: dict[str, int], hungry: str = "", kept: float = 0.0, clock: ManualClock | None = None
) -> FairShares:
    own = FairShares(kept, here_for=10.0, hungry_for=2.0, clock=clock or ManualClock())
    for client, amount in held.items():
        own.take(client, amount)
    for client in hungry:
        own.refuse(client)
    return own


@pytest.mark.parametrize(
    ("held", "hungry", "kept", "room"),
    [
        # nobody else: everything
        ({}, "", 0.0, 120),
        ({}, "", 0.25, 120),
        ({"a": 50}, "", 0.25, 70),
        ({"a": 50}, "a", 0.25, 70),
        # what others have and do not want more of is theirs, the rest is free
        ({"b": 20}, "", 0.0, 100),
        ({"b": 20, "c": 40}, "", 0.0, 60),
        ({"a": 30, "b": 20}, "", 0.25, 40),
        # who wants more gets as much as I
        ({"b": 20}, "b", 0.0, 60),
        ({"b": 0}, "b", 0.0, 60),
        ({"b": 20, "c": 40}, "bc", 0.0, 40),
        ({"a": 50, "b": 20}, "b", 0.0, 10),
        ({"a": 70, "b": 20}, "b", 0.0, -10),
        # my own refusal changes nothing for me
        ({"a": 50}, "a", 0.0, 70),
        # one wants little, one wants more: the rest of the first is shared
        ({"b": 20, "c": 5}, "c", 0.0, 50),
        # what is kept is there for who has less than with one client more
        ({"b": 90}, "b", 0.25, 30),
        ({"b": 90, "c": 0}, "b", 0.25, 30),
        ({"a": 45, "b": 45}, "ab", 0.25, 0),
        # there is never more than is left
        ({"b": 110}, "b", 0.0, 10),
        ({"b": 120}, "b", 0.0, 0),
    ],
)
def test_a_client_may_add_up_to_its_share(
    held: dict[str, int], hungry: str, kept: float, room: float
) -> None:
    assert shares(held, hungry, kept).room("a", LIMIT) == pytest.approx(room)


def test_a_refusal_is_remembered_for_a_while() -> None:
    clock = ManualClock()
    own = shares({"b": 20}, "b", clock=clock)
    clock.advance(1.5)
    own.refuse("b")
    clock.advance(1.5)
    assert own.room("a", LIMIT) == 60, "counted from the last refusal"
    clock.advance(0.5)
    assert own.room("a", LIMIT) == 100


def test_what_is_given_back_is_free_again() -> None:
    own = shares({"a": 30, "b": 50})
    own.give_back("b", 50)
    assert (own.total, own.room("a", LIMIT)) == (30, 90)


def test_any_number_of_refused_keys_is_remembered_in_bounded_memory() -> None:
    own = shares({})
    for number in range(5_000):
        own.refuse(str(number))
    for remembered in (own._refused.keys(), own._came.keys()):
        assert len(remembered) == 1_000
        assert "4999" in remembered


def test_room_is_kept_as_long_as_another_client_came_lately() -> None:
    clock = ManualClock()
    own = shares({"b": 30}, kept=0.25, clock=clock)
    own.give_back("b", 30)
    assert own.room("a", LIMIT) == 90
    clock.advance(10.0)
    assert own.room("a", LIMIT) == 120


amounts = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 60), max_size=6)


@given(amounts, st.text("abcdef", max_size=6), st.floats(0, 0.9))
def test_each_gets_at_least_what_one_client_more_would_leave_if_there_is_room(
    held: dict[str, int], hungry: str, kept: float
) -> None:
    own = shares(held, hungry, kept)
    clients = len(held.keys() | set(hungry) | {"a"})
    least = LIMIT / (clients + 1) - held.get("a", 0)
    assert own.room("a", LIMIT) >= min(least, LIMIT - own.total) - 1e-9


@given(st.integers(1, 6), st.floats(0, 0.5), st.lists(st.integers(0, 5), max_size=400))
def test_whoever_asks_most_all_who_want_more_end_with_equally_much(
    clients: int, kept: float, order: list[int]
) -> None:
    """All are hungry and ask one by one, in any order and any number of times."""
    own = shares({}, "abcdef"[:clients], kept)
    held = dict.fromkeys("abcdef"[:clients], 0)
    for place in [*order, *list(range(clients)) * 120]:
        client = "abcdef"[place % clients]
        if own.room(client, LIMIT) >= 1:
            own.take(client, 1)
            held[client] += 1
    assert max(held.values()) - min(held.values()) <= 1
    assert own.total >= LIMIT * (1 - kept) - clients
