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
    own = FairShares(kept, presence_seconds=10.0, refusal_seconds=2.0, clock=clock or ManualClock())
    for client, amount in held.items():
        own.take(client, amount)
    for client in hungry:
        own.refuse(client, 1)
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
        # half of what is kept is there for one that nobody has seen
        ({"b": 90}, "b", 0.25, 15),
        # all of it, but for what others wait for, is there for who came before
        ({"a": 0, "b": 90}, "b", 0.25, 30),
        ({"a": 0, "b": 90, "c": 0}, "c", 0.25, 29),
        ({"a": 45, "b": 45}, "ab", 0.25, 0),
        # there is never more than is left
        ({"b": 110}, "b", 0.0, 10),
        ({"b": 120}, "b", 0.0, 0),
    ],
)
def test_a_client_may_add_up_to_its_share(
    held: dict[str, int], hungry: str, kept: float, room: float
) -> None:
    assert shares(held, hungry, kept).room("a", LIMIT, LIMIT) == pytest.approx(room)


def test_a_refusal_is_remembered_for_a_while() -> None:
    clock = ManualClock()
    own = shares({"b": 20}, "b", clock=clock)
    clock.advance(1.5)
    own.refuse("b", 1)
    clock.advance(1.5)
    assert own.room("a", LIMIT, LIMIT) == 60, "counted from the last refusal"
    clock.advance(0.5)
    assert own.room("a", LIMIT, LIMIT) == 100


def test_what_is_given_back_is_free_again() -> None:
    own = shares({"a": 30, "b": 50})
    own.release("b", 50)
    assert (own.total, own.room("a", LIMIT, LIMIT)) == (30, 90)


def test_any_number_of_refused_keys_is_remembered_in_bounded_memory() -> None:
    own = shares({})
    for number in range(5_000):
        own.refuse(str(number), 1)
    for remembered in (own._refused.keys(), own._recent_clients.keys()):
        assert len(remembered) == 1_000
        assert "4999" in remembered


def test_room_is_kept_as_long_as_another_client_came_lately() -> None:
    clock = ManualClock()
    own = shares({"b": 30}, kept=0.25, clock=clock)
    own.release("b", 30)
    assert own.room("a", LIMIT, LIMIT) == 90
    clock.advance(10.0)
    assert own.room("a", LIMIT, LIMIT) == 120


amounts = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 60), max_size=6)


@given(amounts, st.text("abcdef", max_size=6), st.floats(0, 0.9))
def test_each_gets_at_least_what_one_client_more_would_leave_if_there_is_room(
    held: dict[str, int], hungry: str, kept: float
) -> None:
    own = shares(held, hungry, kept)
    clients = len(held.keys() | set(hungry) | {"a"})
    least = LIMIT / (clients + 1) - held.get("a", 0)
    others = own._due_to_others("a", LIMIT, 0.5)
    assert others <= LIMIT * kept
    assert own.room("a", LIMIT, LIMIT) >= min(least, LIMIT - own.total - others) - 1e-9


@given(st.integers(1, 6), st.floats(0, 0.5), st.lists(st.integers(0, 5), max_size=400))
def test_whoever_asks_most_all_who_want_more_end_with_equally_much(
    clients: int, kept: float, order: list[int]
) -> None:
    """All are hungry and ask one by one, in any order and any number of times."""
    own = shares({}, "abcdef"[:clients], kept)
    held = dict.fromkeys("abcdef"[:clients], 0)
    for place in [*order, *list(range(clients)) * 120]:
        client = "abcdef"[place % clients]
        if own.room(client, LIMIT, LIMIT) >= 1:
            own.take(client, 1)
            held[client] += 1
    assert max(held.values()) - min(held.values()) <= 1
    assert own.total >= LIMIT * (1 - kept) - clients


def test_whoever_has_nothing_may_have_the_least_however_many_others_there_are() -> None:
    own = shares({f"name-{number}": 1 for number in range(50)}, kept=0.25)
    for number in range(100):
        own.refuse(f"other-{number}", 3)
    assert own.share("a", LIMIT) < 1
    assert own.room("a", LIMIT, LIMIT, min_amount=1) >= 1
    own.take("a", 1)
    assert own.room("a", LIMIT, LIMIT, min_amount=1) < 1


def test_those_who_have_nothing_get_the_least_one_after_the_other() -> None:
    own = shares({"b": 114, "first": 0, "second": 0}, kept=0.25)
    for client in ("first", "second"):
        assert own.room(client, LIMIT, LIMIT, min_amount=10) < 10
        own.refuse(client, 10)
    own.release("b", 4)
    assert own.room("second", LIMIT, LIMIT, min_amount=10) < 10
    assert own.room("never seen", LIMIT, LIMIT, min_amount=10) < 10
    assert own.room("first", LIMIT, LIMIT, min_amount=10) == 10
    own.take("first", 10)
    own.release("b", 10)
    assert own.room("second", LIMIT, LIMIT, min_amount=10) == 10


def test_names_that_are_used_once_come_to_nobodys_turn() -> None:
    own = shares({f"b-{number}": 3 for number in range(22)} | {"polite": 0}, kept=0.25)
    for number in range(500):
        own.refuse(f"new-{number}", 3)
    own.refuse("polite", 3)
    assert own.room("polite", LIMIT, LIMIT, min_amount=3) >= 3
    assert own.room("another", LIMIT, LIMIT, min_amount=3) < 3


@given(amounts, st.integers(0, 200), st.integers(1, 5))
def test_a_crowd_of_names_leaves_no_room_unused_but_what_is_kept(
    held: dict[str, int], crowd: int, least: int
) -> None:
    """Goodput: names that nobody can serve do not keep out those that could be."""
    own = shares(held, kept=0.2)
    for number in range(crowd):
        name = f"name-{number}"
        if own.room(name, LIMIT, LIMIT, least) >= least:
            own.take(name, least)
    if own.total < sum(held.values()) + crowd * least:  # somebody was refused
        assert (
            own.total >= LIMIT * (1 - 2 * 0.2) - 2 * least
            or own._possible_amount("x", LIMIT * 0.6, 0) < least
        )
