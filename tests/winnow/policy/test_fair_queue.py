"""Whose turn it is: some for all who wait, more for who asks little; first in first out for each."""

from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.policy.fair_queue import FairQueue

CLIENTS = "abcd"


def test_who_asks_little_waits_for_one_turn_of_each_other_client() -> None:
    queue = FairQueue[int]()
    for number in range(100):
        queue.add("greedy", number)
    assert [queue.take() for _ in range(3)] == [("greedy", 0), ("greedy", 1), ("greedy", 2)]
    queue.add("polite", 7)
    queue.add("polite", 8)
    order = [taken[0] for _ in range(6) if (taken := queue.take())]
    assert order.count("polite") == 2
    assert "polite" in order[:2]


def test_who_had_little_of_late_is_ahead_and_the_others_go_on() -> None:
    queue = FairQueue[int]()
    queue.add("polite", 0)
    for number in range(100):
        queue.add("greedy", number)
    for _ in range(50):
        queue.take()
    for number in range(50):
        queue.add("polite", number)
    turns = Counter(taken[0] for _ in range(20) if (taken := queue.take()))
    assert turns == {"polite": 15, "greedy": 5}


def test_what_was_saved_up_while_away_is_used_up() -> None:
    """Then both have equally many turns."""
    queue = FairQueue[int]()
    queue.add("polite", 0)
    for number in range(3_000):
        queue.add("greedy", number)
    for _ in range(1_000):
        queue.take()
    for number in range(2_000):
        queue.add("polite", number)
    for _ in range(1_000):
        queue.take()
    turns = Counter(taken[0] for _ in range(200) if (taken := queue.take()))
    assert turns["polite"] == pytest.approx(100, abs=5)


@given(st.integers(1, 12), st.integers(1, 10))
def test_of_greedy_clients_the_one_that_asks_now_and_then_is_ahead(
    greedy: int, passages: int
) -> None:
    """Of two turns one is its own."""
    queue = busy(greedy, 1_000)
    queue.add("polite", 0)
    for _ in range(1_000):
        queue.take()
    for number in range(passages):
        queue.add("polite", number)
    turns = [taken[0] for _ in range(2 * passages) if (taken := queue.take())]
    assert turns.count("polite") == passages


@given(st.integers(1, 200), st.integers(1, 10))
def test_new_names_for_every_entry_take_every_other_turn_at_most(names: int, passages: int) -> None:
    queue = FairQueue[int]()
    queue.add("polite", 0)
    queue.take()
    for number in range(names):
        queue.add(f"new-{number}", 0)
    for number in range(passages):
        queue.add("polite", number)
    turns = []
    for number in range(2 * passages):
        queue.add(f"newer-{number}", 0)
        turns.append(taken[0] if (taken := queue.take()) else "")
    assert turns.count("polite") == passages


@given(st.integers(1, 20))
def test_a_new_name_waits_for_one_round_and_no_less(clients: int) -> None:
    queue = busy(clients, 500)
    queue.add("new", 0)
    queue.add("new", 1)
    turns = [taken[0] for _ in range(2 * clients + 2) if (taken := queue.take())]
    assert [place for place, name in enumerate(turns) if name == "new"] == [
        clients,
        2 * clients + 1,
    ]


def busy(clients: int, entries: int) -> FairQueue[int]:
    """Clients that are known, each with a number of entries."""
    queue = FairQueue[int]()
    for number in range(entries):
        for client in range(clients):
            queue.add(f"greedy-{client}", number)
    for _ in range(2 * clients):
        queue.take()
    return queue


def test_what_is_put_back_goes_on_before_the_rest_of_its_line() -> None:
    queue = FairQueue[int]()
    queue.add("a", 1)
    queue.add("a", 2)
    assert queue.take() == ("a", 1)
    queue.put_back("a", 1)
    assert [queue.take(), queue.take(), queue.take()] == [("a", 1), ("a", 2), None]


def test_what_is_taken_out_never_gets_a_turn() -> None:
    queue = FairQueue[int]()
    queue.add("a", 1)
    queue.add("a", 2)
    assert queue.remove("a", 1)
    assert not queue.remove("a", 1)
    assert not queue.remove("b", 2)
    assert [queue.take(), queue.take()] == [("a", 2), None]


steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "take", "remove", "back"]), st.sampled_from(CLIENTS)),
    max_size=200,
)


@given(steps)
def test_nothing_is_lost_and_each_client_is_served_in_its_order(
    made: list[tuple[str, str]],
) -> None:
    queue = FairQueue[int]()
    lines: dict[str, deque[int]] = {client: deque() for client in CLIENTS}
    last: tuple[str, int] | None = None
    for number, (step, client) in enumerate(made):
        if step == "add":
            queue.add(client, number)
            lines[client].append(number)
        elif step == "remove" and lines[client]:
            assert queue.remove(client, lines[client].pop())
        elif step == "back" and last is not None:
            queue.put_back(*last)
            lines[last[0]].appendleft(last[1])
            last = None
        elif step == "take":
            last = queue.take()
            if last is None:
                assert not any(lines.values()), "a free thread finds every waiting entry"
            else:
                assert lines[last[0]].popleft() == last[1]
        assert len(queue) == sum(map(len, lines.values()))


@given(steps, st.integers(1, 60))
def test_while_all_wait_nobody_has_less_than_half_an_equal_share(
    before: list[tuple[str, str]], turns: int
) -> None:
    """For any history."""
    queue = FairQueue[int]()
    for step, client in before:
        if step == "add":
            queue.add(client, 0)
        elif step == "take":
            queue.take()
    for client in CLIENTS:
        for _ in range(turns):
            queue.add(client, 1)
    served = Counter(taken[0] for _ in range(turns) if (taken := queue.take()))
    assert min(served[client] for client in CLIENTS) >= turns // (2 * len(CLIENTS))


@given(st.integers(1, 12), st.integers(1, 400))
def test_clients_that_always_wait_have_equally_many_turns_but_a_few(
    clients: int, turns: int
) -> None:
    queue = FairQueue[int]()
    for client in range(clients):
        for number in range(turns):
            queue.add(f"client-{client}", number)
    served = Counter(taken[0] for _ in range(turns) if (taken := queue.take()))
    counts = [served[f"client-{client}"] for client in range(clients)]
    assert max(counts) - min(counts) <= 4


@given(st.lists(st.sampled_from(CLIENTS), max_size=60), st.integers(0, 10))
def test_nobody_starves(greedy: list[str], own: int) -> None:
    """The n-th of a client comes in the n-th round of the others, of twice as many turns."""
    queue = FairQueue[int]()
    for client in greedy:
        queue.add(client, 0)
    for _ in range(own + 1):
        queue.add("me", 1)
    most = 2 * (own + 1) * (len(set(greedy)) + 1)
    served = [taken[0] for _ in range(most) if (taken := queue.take())]
    assert served.count("me") == own + 1


@given(st.integers(1, 300))
def test_names_are_forgotten_when_they_wait_for_nothing(names: int) -> None:
    queue = FairQueue[int]()
    queue.add("stays", 0)
    for number in range(names):
        queue.add("stays", 0)
        queue.add(f"name-{number}", 0)
        queue.take()
        queue.take()
        assert len(queue._lines) <= 2
    while queue.take():
        pass
    assert not queue._lines
    assert len(queue._usage) <= 1_000
