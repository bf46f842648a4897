"""Whose turn it is: equally many for all who wait, first in first out for each."""

from collections import Counter, deque

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


def test_nobody_saves_up_turns_while_away() -> None:
    queue = FairQueue[int]()
    queue.add("polite", 0)
    for number in range(100):
        queue.add("greedy", number)
    for _ in range(50):
        queue.take()
    for number in range(50):
        queue.add("polite", number)
    turns = Counter(taken[0] for _ in range(20) if (taken := queue.take()))
    assert turns == {"greedy": 10, "polite": 10}


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
                assert not any(lines.values()), "a free thread finds whatever waits"
            else:
                assert lines[last[0]].popleft() == last[1]
        assert len(queue) == sum(map(len, lines.values()))


@given(steps, st.integers(2, 40))
def test_while_all_wait_all_get_equally_many_turns(
    before: list[tuple[str, str]], turns: int
) -> None:
    """Whatever happened before."""
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
    counts = [served[client] for client in CLIENTS]
    assert max(counts) - min(counts) <= 1


@given(st.lists(st.sampled_from(CLIENTS), max_size=60), st.integers(0, 10))
def test_nobody_starves(greedy: list[str], own: int) -> None:
    """The n-th of a client comes after n turns of each other one, however many those have."""
    queue = FairQueue[int]()
    for client in greedy:
        queue.add(client, 0)
    for _ in range(own + 1):
        queue.add("me", 1)
    most = (own + 1) * (len(set(greedy)) + 1)
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
